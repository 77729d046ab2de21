// The rows and columns of a pprof file: what is summed of a profile's samples and aggregates. Used by the pprof writer.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "profile/profile.h"
#include "profile/row_index.h"
#include "timeline/timeline.h"

namespace cprof::format {

struct ValueColumn {
  enum class Source : uint8_t { kCount, kCpu, kWall, kWeight };
  std::string_view type, unit;
  Source source = Source::kWeight;
  profile::MetricId metric;
};

class ValueTable {
 public:
  struct Row {
    profile::CallSiteId site;
    profile::ThreadId thread;
    profile::LabelSetId labels;
  };

  explicit ValueTable(const profile::Profile& profile);

  const std::vector<ValueColumn>& columns() const { return columns_; }
  const std::vector<Row>& rows() const { return rows_; }
  std::span<const int64_t> values(size_t row) const {
    return std::span(values_).subspan(row * columns_.size(), columns_.size());
  }

  std::string_view default_type() const { return default_type_; }
  std::string_view period_type() const { return period_type_; }
  std::string_view period_unit() const { return period_unit_; }
  int64_t period() const { return period_; }  // 0: not known

 private:
  void choose_recording_columns();
  void choose_import_columns();
  void choose_period();
  void add_samples();
  void add_off_cpu();
  void add_aggregates();
  void add(const Row& row, size_t column, int64_t value);
  void add_wall(const Row& row, uint64_t value);
  int64_t cpu_of(const profile::Sample& sample) const;

  const profile::Profile& profile_;
  std::vector<ValueColumn> columns_;
  std::vector<std::vector<size_t>> columns_of_metric_;
  std::vector<Row> rows_;
  std::vector<int64_t> values_;
  timeline::WallWeights wall_;
  profile::RowIndex index_;
  std::string_view default_type_, period_type_, period_unit_;
  int64_t period_ = 0;
};

}  // namespace cprof::format
