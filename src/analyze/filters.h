// What every view and every output can leave out of a profile: by frame, thread, process, time and label. One meaning for
// convert, report, diff and the page: a profile goes in, a smaller one comes out. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/pattern.h"
#include "base/result.h"
#include "profile/profile.h"

namespace cprof::analyze {

// "1.5", "200ms", "5us": seconds unless a suffix says s, ms, us or ns. Nothing: it is none.
std::optional<uint64_t> parse_duration(std::string_view text);

struct TimeRange {  // nanoseconds since the recording's start; the end is not part of it
  uint64_t from_ns = 0, to_ns = UINT64_MAX;
};
// "1.5..3", "200ms..", "..2s": seconds unless a suffix says s, ms, us or ns.
Result<TimeRange> parse_time_range(std::string_view text);

struct LabelFilter {
  std::string key, value;  // a number's text may have its unit: "64", "64bytes"
};
Result<LabelFilter> parse_label(std::string_view text);  // "key=value"

// Functions of Python programs, which CPython names in the code that it makes for them (python -X perf).
enum class PythonFrames : uint8_t {
  kMixed,  // among the interpreter's own, as they were recorded
  kHide,   // the interpreter's own are taken out of the stacks that have any of these; libraries and the kernel stay
  kOnly,   // all others are taken out: the time of the interpreter, of libraries and of the kernel is their caller's
};
std::optional<PythonFrames> python_frames_from(std::string_view name);  // "mixed"

// pprof's meanings. An expression is looked for in a frame's function, its source file and the path of its binary.
struct Filters {
  std::vector<Pattern> focus = {};      // keep stacks with a frame that matches; of several, each must be found
  std::vector<Pattern> ignore = {};     // leave out stacks with a frame that matches
  std::vector<Pattern> hide = {};       // take frames that match out of their stacks; stacks of nothing else go
  std::optional<Pattern> show_from = {};  // take out what is above the outermost frame that matches; stacks without one go
  std::vector<std::string> threads = {};    // names or thread ids: any of them
  std::vector<std::string> processes = {};  // names or process ids: any of them
  std::optional<TimeRange> time = {};
  std::vector<LabelFilter> labels = {};     // all of them
  PythonFrames python = PythonFrames::kMixed;

  bool empty() const;
  bool by_frame() const {
    return !focus.empty() || !ignore.empty() || !hide.empty() || show_from.has_value() || python != PythonFrames::kMixed;
  }
};

// A filter that the profile has nothing for (times, threads, labels that are not in it) is an error that says what there
// is; a filter that leaves nothing is not.
Result<profile::Profile> filtered(const profile::Profile& profile, const Filters& filters);

}  // namespace cprof::analyze
