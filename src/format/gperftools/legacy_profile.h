// What every old format comes down to: stacks of addresses with values, and behind them a memory map or names. Filled by
// the readers of this folder, then turned into a Profile at once, for the map and the names come last in the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/number_map.h"
#include "base/result.h"
#include "format/gperftools/memory_map.h"
#include "profile/builder.h"

namespace cprof::format {

class LegacyProfile {
 public:
  explicit LegacyProfile(std::string name) : name_(std::move(name)) { profile().run.source = name_; }

  profile::Profile& profile() { return builder_.profile(); }
  const std::string& name() const { return name_; }

  // In the order of a stack's values; the last one is the default.
  void add_metric(std::string_view name, std::string_view unit, uint64_t period = 0, bool is_time = false);
  // What the sampling counted, where it is not one of the metrics.
  void set_period(std::string_view type, std::string_view unit, int64_t period);

  // block_size: of one allocation, kNoBlock when there is none.
  static constexpr int64_t kNoBlock = INT64_MIN;
  void add_stack(std::span<const uint64_t> leaf_first, std::span<const int64_t> values, int64_t block_size = kNoBlock);
  bool has_stacks() const { return !rows_.empty(); }
  std::span<int64_t> last_values();  // of the stack that was added last

  // Innermost first when an address has several. Names are kept for addresses as they stand in the stacks.
  void add_name(uint64_t address, std::string_view function, std::string_view file = {}, uint32_t line = 0);
  MemoryMap& map() { return map_; }

  // The first address of a stack is where the program counter was; else it is a return address like the others.
  void set_exact_leaves() { has_exact_leaves_ = true; }
  // The addresses are numbers of entries in a table of names, no code.
  void set_numbered() { is_numbered_ = true; }

  profile::Profile take();

 private:
  struct Row {
    uint64_t first;  // in addresses_
    uint32_t count;
    int64_t block_size;
  };

  void make_mappings();
  profile::LocationId location(uint64_t address, bool is_exact);
  profile::LocationId new_location(uint64_t address, bool is_return_address);

  std::string name_;
  profile::ProfileBuilder builder_;
  std::vector<profile::MetricId> metrics_;
  std::vector<Row> rows_;
  std::vector<uint64_t> addresses_;
  std::vector<int64_t> values_;  // metrics_.size() a row
  MemoryMap map_;
  std::vector<profile::MappingId> mappings_;  // by entry of map_
  NumberMap<uint64_t, std::vector<profile::Line>> names_;
  NumberMap<uint64_t, profile::LocationId> exact_, callers_;
  bool is_numbered_ = false, has_exact_leaves_ = false;
};

}  // namespace cprof::format
