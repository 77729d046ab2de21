// What a file of the Firefox Profiler holds, column by column as it stands there. Filled by firefox_parser.h, made into a
// Profile by firefox_to_profile.h. Plain data.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "profile/profile.h"

namespace cprof::format {

inline constexpr unsigned kMillisToNanos = 6;  // as a power of ten
inline constexpr int32_t kNoIndex = -1;         // null in a column of indexes
inline constexpr int64_t kNoNumber = INT64_MIN;  // null in a column of numbers

using IndexColumn = std::vector<int32_t>;
using NumberColumn = std::vector<int64_t>;

// Of one thread, or of all (since version 60).
struct FirefoxTables {
  struct {
    IndexColumn frame, prefix, prefix_offset;  // one of the last two
  } stacks;
  struct {
    NumberColumn address;
    IndexColumn func, category, line, column, inline_depth, lib;
  } frames;
  struct {
    IndexColumn name, resource, file_name, source, line, is_js;
  } funcs;
  IndexColumn resource_libs;
  std::vector<StringId> strings;
};

struct FirefoxSamples {
  IndexColumn stack;
  NumberColumn time_ns, delta_ns;  // one of them, or none
  NumberColumn weight;             // times 10^6
  NumberColumn cpu_delta;          // times 10^3
  std::string weight_type = "samples";
};

struct FirefoxField {  // of a marker's data
  StringId key, text;
  bool is_number = false;
};

struct FirefoxMarkers {
  IndexColumn name, category, phase;
  NumberColumn start_ns, end_ns, time_ns;  // time_ns: before version 32
  std::vector<std::pair<uint32_t, uint32_t>> data;  // first, count in fields
  std::vector<FirefoxField> fields;
};

struct FirefoxThread {
  std::string name, process_name, pid, tid;
  bool is_main = false;
  int32_t first_lib = 0;  // in the file's, before version 41
  int64_t start_ns = 0, end_ns = kNoNumber;
  FirefoxSamples samples, js_allocations, native_allocations;
  FirefoxMarkers markers;
  FirefoxTables tables;
};

struct FirefoxCounter {
  std::string name, category, pid, graph;
  NumberColumn time_ns, delta_ns, count;  // count times 10^3
};

struct FirefoxLib {
  std::string name, path, code_id, breakpad_id;
};

struct FirefoxFile {
  int64_t version = kNoNumber, interval_ns = 0, start_time_ns = 0, clock_ns = 0;
  bool is_raw = false;  // a Gecko profile that was not processed
  std::string product, time_unit = "ms", cpu_unit;
  std::vector<std::string> categories;
  std::set<std::pair<std::string, std::string>> text_fields;  // marker type and key whose number is that of a string
  std::vector<FirefoxLib> libs;
  FirefoxTables shared;
  bool has_shared_tables = false;
  IndexColumn source_files;  // strings
  std::vector<FirefoxThread> threads;
  std::vector<FirefoxCounter> counters;
  // Of our own writer.
  std::string metric, metric_unit;
  bool is_untimed = false;
};

}  // namespace cprof::format
