// The names of events: callgrind's are words that may carry a unit, ours are told in full by "event:" lines. Used by the
// reader and the writer; pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cprof::format {

struct CallgrindEvent {
  std::string name, unit = "count";
  int64_t factor = 1;  // costs in the file to the unit
};

// "Ir", "Time_(10ns)", "Memory_(bytes)"; long_names are the "event:" lines of our own files.
CallgrindEvent parse_event(std::string_view word, std::span<const std::string> long_names);

// A metric's name as one word, and the line that tells it in full: "cpu_clock", "cpu_clock : cpu-clock (nanoseconds)".
std::string event_word(std::string_view name);
std::string event_line(std::string_view word, std::string_view name, std::string_view unit);

}  // namespace cprof::format
