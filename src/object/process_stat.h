// The texts of /proc/PID/stat and /proc/PID/status, apart from the reading of files. Private to object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cprof::object {

struct StatLine {
  std::string comm;  // between the first "(" and the last ")": it may hold both, spaces and newlines
  int32_t parent_pid = 0;
  uint64_t start_ticks = 0;
};
std::optional<StatLine> parse_stat(std::string_view text);

// The last number of the NSpid line.
std::optional<int32_t> parse_innermost_pid(std::string_view status);

}  // namespace cprof::object
