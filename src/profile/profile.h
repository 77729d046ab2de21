// The one profile model. Readers and the pipeline build it (ProfileBuilder); writers, views and SQL only read it.
// Plain columns of plain rows, ids are indexes. Timed samples and untimed aggregates live side by side.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/ids.h"
#include "base/string_table.h"

namespace cprof::profile {

using ProcessId = Id<struct ProcessTag>;
using ThreadId = Id<struct ThreadTag>;
using MappingId = Id<struct MappingTag>;
using FunctionId = Id<struct FunctionTag>;
using LocationId = Id<struct LocationTag>;
using CallSiteId = Id<struct CallSiteTag>;
using MetricId = Id<struct MetricTag>;
using LabelSetId = Id<struct LabelSetTag>;
using TrackId = Id<struct TrackTag>;

inline constexpr StringId kNoText{uint32_t{0}};  // the "" of every StringTable

enum class FrameKind : uint8_t { kUser, kKernel, kJit, kInterpreted, kUnknown };

struct Process {
  int32_t pid = 0;
  StringId name = kNoText;    // comm of the main thread, the last one set
  StringId cgroup = kNoText;  // its control group, which tells its container (base/container_name.h); "" unknown
  uint64_t start_ns = 0;      // first seen
  uint64_t end_ns = 0;        // 0: still alive at the end
};

struct Thread {
  ProcessId process{};
  int32_t tid = 0;
  StringId name = kNoText;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;  // 0: still alive at the end
};

// A file (or JIT region, or the kernel) mapped into processes. One row per distinct (path, build-id, start, file_offset).
struct Mapping {
  StringId path = kNoText;      // "/usr/lib/libc.so.6", "[vdso]", "[kernel]", "[nfs]", "//anon"
  StringId build_id = kNoText;  // lower-case hex, "" when unknown
  uint64_t start = 0, end = 0;  // in the process where it was first seen
  uint64_t file_offset = 0;
  uint64_t load_bias = 0;  // avma - svma
  bool has_functions = false, has_filenames = false, has_line_numbers = false, has_inline_frames = false;
};

struct Function {
  StringId name = kNoText;         // demangled; never empty (unnamed code: "[libx.so+0x4080]")
  StringId system_name = kNoText;  // as in the symbol table
  StringId file = kNoText;         // source file, "" when unknown
  uint32_t start_line = 0;         // 0 unknown
};

struct Line {
  FunctionId function{};
  uint32_t line = 0;  // 0 unknown
  uint32_t column = 0;
  bool operator==(const Line&) const = default;
};

// A place in code. lines: innermost inlined function first, the real function last; empty until named.
struct Location {
  MappingId mapping{};
  uint64_t address = 0;       // avma as first seen (pprof's Location.address); unique per mapping for pc-less frames
  uint64_t file_address = 0;  // svma: the address in the ELF file's own terms; equals address when there is no file
  uint64_t function_start = 0;  // svma where the function (or its unwind range) begins; 0 unknown. Identity when unnamed
  uint32_t first_line = 0;  // index into lines
  uint16_t line_count = 0;
  FrameKind kind = FrameKind::kUser;
  bool is_return_address = false;  // the call is before address: line lookup used address - 1
  bool is_folded = false;          // pprof's is_folded

  // Of the call itself where the address is what it returns to: functions and lines are looked up by these.
  uint64_t call_address() const { return address - (is_return_address ? 1 : 0); }
  uint64_t call_file_address() const { return file_address - (is_return_address ? 1 : 0); }
};

struct CallSite {
  CallSiteId parent{};  // invalid for a root
  LocationId location{};
  uint32_t depth = 0;  // 0 for a root
};

enum class WeightKind : uint8_t { kSamples, kWall, kOffCpu, kOther };

// Why a thread was not on a CPU. Which kernel code means which is decided in timeline.
enum class WaitClass : uint8_t {
  kFutex,
  kLock,
  kPoll,
  kSleep,
  kIo,
  kNetwork,
  kMemory,
  kSched,  // runnable: preempted, yielded, or woken and waiting for a CPU
  kOther,
  kCount
};
std::string_view name_of(WaitClass wait_class);  // "futex": stable, used in SQL and files

struct Metric {
  StringId name = kNoText;  // "samples", "cpu-clock", "alloc_space"
  StringId unit = kNoText;  // "count", "nanoseconds", "bytes"
  uint64_t period = 0;      // sampling period in the unit, 0 unknown
  bool is_time = false;     // weights are nanoseconds on a CPU
};

// How far a stack got. kComplete and kNotUnwound (no registers: kernel thread, or imported) are not losses.
enum class StackEnd : uint8_t {
  kComplete,
  kNotUnwound,
  kTruncatedSnapshot,
  kMaxDepth,
  kNoMapping,
  kNoUnwindInfo,
  kBadUnwindInfo,
  kUnreadableMemory,
  kNoProgress,
  kBadPc,
  kExecInProgress,
  kUnsupportedAbi,
  kCount
};
std::string_view name_of(StackEnd end);         // "truncated-snapshot": stable, used in SQL and files
std::string_view description_of(StackEnd end);  // a plain sentence with the mend
// Whether there was a user stack to unwind: inside execve the old program's registers are still there, its stack is not.
constexpr bool had_user_stack(StackEnd end) { return end != StackEnd::kNotUnwound && end != StackEnd::kExecInProgress; }
constexpr bool is_incomplete(StackEnd end) { return end != StackEnd::kComplete && had_user_stack(end); }

struct Label {
  StringId key = kNoText;
  StringId text = kNoText;  // "" when number
  int64_t number = 0;
  StringId unit = kNoText;
  bool is_number = false;
};

struct Sample {
  uint64_t time_ns = 0;
  int64_t weight = 1;  // in the metric's unit
  ThreadId thread{};
  CallSiteId site{};  // invalid: no stack at all, shown as [unknown]
  uint32_t cpu = 0;
  MetricId metric{};
  LabelSetId labels{};  // invalid: none
  StackEnd end = StackEnd::kComplete;
  bool in_kernel = false;
};

struct Aggregate {
  CallSiteId site{};
  MetricId metric{};
  LabelSetId labels{};
  int64_t value = 0;
  ThreadId thread{};  // invalid when unknown
  StackEnd end = StackEnd::kNotUnwound;
};

struct SwitchInterval {  // a thread on a CPU
  ThreadId thread{};
  uint64_t start_ns = 0, end_ns = 0;
  uint32_t cpu = 0;
  bool preempted = false;  // at its end
};

// A thread off the CPU. Two parts: it waited until woken_ns, then it was runnable (class sched) until end_ns.
struct OffCpuInterval {
  ThreadId thread{};
  uint64_t start_ns = 0, end_ns = 0;
  uint64_t woken_ns = 0;                       // 0: not told; start_ns: runnable all the time
  WaitClass wait_class = WaitClass::kOther;    // of the part before woken_ns; kSched when there is none
  CallSiteId site{};                           // where it left the CPU; invalid: not known
  StackEnd end = StackEnd::kNotUnwound;        // of that stack
  ThreadId waker{};                            // invalid: an interrupt, unknown, or a thread outside the profile
  uint32_t cpu = 0;                            // that it left
  bool is_borrowed = false;  // stacks were thinned: this one is of an earlier switch of the thread
  bool is_guessed = false;   // no kernel stack of its own told the class
  bool is_open = false;      // cut by the end of the run or of the thread
  bool is_uninterruptible = false;  // no signal would have ended the wait; false, too, where the source does not tell

  uint64_t runnable_ns() const { return woken_ns == 0 ? end_ns : woken_ns; }  // when the second part begins
  uint64_t duration_ns() const { return end_ns - start_ns; }
};

// From here until its next sample or wait a thread shows nothing: what it showed was filtered away. Without these, the
// stack before would seem to go on.
struct Break {
  ThreadId thread{};
  uint64_t time_ns = 0;
  MetricId metric{};  // on whose timeline; invalid: on every one
};

// The metric whose values are the durations of off_cpu.
inline constexpr std::string_view kOffCpuMetric = "offcpu";

// A lane of its own for slices, marks or counter values: of a thread, of a process, or of neither.
struct Track {
  StringId name = kNoText;
  StringId unit = kNoText;  // of counter values; "" when unknown
  ProcessId process{};
  ThreadId thread{};
};

// A named span that a program or an import gave (not derived from samples).
struct Slice {
  ThreadId thread{};  // invalid when it lies on a track of its own
  StringId name = kNoText, category = kNoText;
  uint64_t start_ns = 0, duration_ns = 0;
  uint32_t depth = 0;       // among the slices of its thread or track; 0 outermost
  TrackId track{};          // invalid: the thread's own
  LabelSetId labels{};      // its arguments; invalid: none
  bool is_open = false;     // its end was never told: it lasts until the end of what is known
};

// An instant.
struct Mark {
  ThreadId thread{};
  StringId name = kNoText, category = kNoText;
  uint64_t time_ns = 0;
  TrackId track{};
  LabelSetId labels{};
};

struct CounterValue {
  TrackId track{};
  uint64_t time_ns = 0;
  double value = 0;
};

struct RunInfo {
  std::string tool;                                       // "cprof 0.1.0"
  std::string command, hostname, kernel_release, source;  // source: the file's name for imports
  uint64_t start_ns = 0, end_ns = 0;                      // CLOCK_MONOTONIC
  uint64_t start_realtime_ns = 0;
  uint64_t sampling_interval_ns = 0;  // 0: not time-sampled
  uint32_t cpus = 0;
  bool has_switches = false;
  bool has_off_cpu = false;           // off_cpu is complete, but for what diagnostics say
  bool is_unfinished = false;         // what a recording had when it was cut off: its code has no names yet
  uint64_t collector_cpu_ns = 0;
  uint64_t bytes_read = 0;               // kernel to user
  std::vector<std::string> comments;     // pprof comments
  std::string period_type, period_unit;  // pprof's period_type, where it is not one of the metrics
  int64_t period = 0;                    // in period_unit
  StringId default_metric = kNoText;
};

struct Profile {
  RunInfo run;
  StringTable strings;
  std::vector<Process> processes;
  std::vector<Thread> threads;
  std::vector<Mapping> mappings;
  std::vector<Function> functions;
  std::vector<Line> lines;
  std::vector<Location> locations;
  std::vector<CallSite> sites;  // a parent always comes before its children
  std::vector<Metric> metrics;
  std::vector<Label> labels;
  std::vector<std::pair<uint32_t, uint32_t>> label_sets;  // [first, count) in labels
  std::vector<Sample> samples;                            // sorted by time, then input order
  std::vector<Aggregate> aggregates;
  std::vector<SwitchInterval> on_cpu;  // sorted by thread, then start
  std::vector<OffCpuInterval> off_cpu;  // sorted by thread, then start
  std::vector<Break> breaks;            // sorted by thread, then time
  std::vector<Track> tracks;
  std::vector<Slice> slices;
  std::vector<Mark> marks;
  std::vector<CounterValue> counters;
  Diagnostics diagnostics;

  std::string_view text(StringId id) const { return strings[id]; }
  std::span<const Line> lines_of(LocationId id) const {
    const Location& l = locations[id.index()];
    return {lines.data() + l.first_line, l.line_count};
  }
  std::span<const Label> labels_of(LabelSetId id) const {  // none of an invalid one
    if (!id.valid()) return {};
    const auto [first, count] = label_sets[id.index()];
    return {labels.data() + first, count};
  }
  bool timed() const { return !samples.empty() || !off_cpu.empty(); }
};

// What an interval adds to the metric offcpu: nanoseconds.
int64_t off_cpu_value(const OffCpuInterval& interval);
// The stack without its kernel frames: where a thread goes on when it is back on a CPU. Invalid when nothing is left.
CallSiteId user_part(const Profile& profile, CallSiteId site);

}  // namespace cprof::profile
