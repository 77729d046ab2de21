// A Profile message taken apart into tables, as they are in the file: ids and string indexes still unchecked. Used by
// the pprof reader only. Views point into the bytes, which must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/number_map.h"
#include "base/result.h"

namespace cprof::format {

struct PprofFile {
  struct ValueType {
    int64_t type = 0, unit = 0;
  };
  struct Mapping {
    uint64_t id = 0, start = 0, limit = 0, offset = 0;
    int64_t filename = 0, build_id = 0;
    bool has_functions = false, has_filenames = false, has_line_numbers = false, has_inline_frames = false;
  };
  struct Line {
    uint64_t function_id = 0;
    int64_t line = 0, column = 0;
  };
  struct Location {
    uint64_t id = 0, mapping_id = 0, address = 0;
    uint32_t first_line = 0, line_count = 0;
    bool is_folded = false;
  };
  struct Function {
    uint64_t id = 0;
    int64_t name = 0, system_name = 0, filename = 0, start_line = 0;
  };
  struct Label {
    int64_t key = 0, str = 0, num = 0, num_unit = 0;
  };

  std::vector<std::string_view> strings;
  std::vector<ValueType> sample_types;
  std::vector<Mapping> mappings;
  std::vector<Location> locations;
  std::vector<Line> lines;
  std::vector<Function> functions;
  std::vector<int64_t> comments;
  ValueType period_type;
  bool has_period_type = false;
  int64_t period = 0, time_nanos = 0, duration_nanos = 0;
  int64_t default_sample_type = 0, drop_frames = 0, keep_frames = 0;
};

struct PprofSample {
  std::vector<uint64_t> locations;  // leaf first
  std::vector<int64_t> values;
  std::vector<PprofFile::Label> labels;
};

// An error tells the byte of the field that is damaged or cut off.
Result<PprofFile> parse_pprof(std::span<const std::byte> bytes, const std::string& name);
// All samples, in the order of the file. The sample is valid during the call.
Result<void> for_each_pprof_sample(std::span<const std::byte> bytes, const std::string& name,
                                   const std::function<Result<void>(const PprofSample&)>& on_sample);

// Rows by their id: a plain table while ids are dense, as nearly every writer makes them.
class IdIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  void reserve(size_t rows) { dense_limit_ = rows * 2 + 1024; }
  // False when the id is taken.
  bool add(uint64_t id, uint32_t row);
  uint32_t find(uint64_t id) const;

 private:
  size_t dense_limit_ = 0;
  std::vector<uint32_t> dense_;
  NumberMap<uint64_t, uint32_t> sparse_;
};

}  // namespace cprof::format
