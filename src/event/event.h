// The event stream: what every source of samples emits and the pipeline consumes. One small type each, a variant at the
// sink. Views and spans inside an event are valid only during the call that delivers it.
// Times are nanoseconds of CLOCK_MONOTONIC. A source delivers events of one run in time order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"

namespace cprof::event {

enum class Arch : uint8_t { kX86_64, kAarch64 };

// One thread. pid is the thread group (what users call the process), both as the initial pid namespace numbers them.
struct Task {
  int32_t pid = 0;
  int32_t tid = 0;
  auto operator<=>(const Task&) const = default;
};

// One -e: what is counted, and what one count is.
struct Metric {
  std::string name;        // "cpu-clock", "page-faults", "sched:sched_switch"
  std::string unit;        // "nanoseconds" for clocks, else "count"
  uint32_t type = 0;       // perf_event_attr.type and .config
  uint64_t config = 0;
  uint64_t period = 0;     // fixed period, 0 when freq_hz is set
  uint64_t freq_hz = 0;
  bool is_time = false;    // its counts are nanoseconds of CPU
  // Context switches taken for off-CPU: each sample is the stack of the SwitchOut of its task that follows, its period
  // how many of them it stands for. Not a metric of the profile.
  bool is_switch_stacks = false;
};

struct SessionInfo {
  Arch arch = Arch::kX86_64;
  std::vector<Metric> metrics;         // Sample.metric indexes this
  std::string command;                 // what was recorded, for people
  std::string hostname;
  std::string kernel_release;
  uint32_t cpus_online = 0;
  uint64_t start_ns = 0;               // CLOCK_MONOTONIC
  uint64_t start_realtime_ns = 0;      // CLOCK_REALTIME at start_ns
  bool is_other_clock = false;         // a file's times are not CLOCK_MONOTONIC: they compare with each other only
  bool has_switches = false;           // SwitchOut/SwitchIn records are complete, so on-CPU time is exact
  bool has_off_cpu = false;            // waits are wanted: with their stacks where the source could take them
  uint64_t stacks_repeat_ns = 0;       // not 0: a StackDef that is still used comes again within this time
  bool has_kernel_stacks = false;
  std::string kernel_stacks_missing;   // why not, one plain line; empty when has_kernel_stacks
};

// User registers as perf numbers them (PERF_REG_X86_*, PERF_REG_ARM64_*), values in the order of mask's set bits.
struct Registers {
  uint64_t abi = 0;  // PERF_SAMPLE_REGS_ABI_*: 0 none, 1 32-bit, 2 64-bit
  uint64_t mask = 0;
  std::span<const uint64_t> values = {};

  std::optional<uint64_t> get(unsigned perf_number) const {
    if (perf_number >= 64 || !(mask >> perf_number & 1)) return std::nullopt;
    size_t index = static_cast<size_t>(__builtin_popcountll(mask & ((uint64_t{1} << perf_number) - 1)));
    if (index >= values.size()) return std::nullopt;
    return values[index];
  }
};

// The user registers and the bytes at [SP, SP + stack.size()) at the sampled moment.
struct Snapshot {
  Registers registers = {};
  std::span<const std::byte> stack = {};
  uint32_t requested_bytes = 0;  // what was asked for; a record of 64 KiB holds less when it holds much else
  bool is_full = false;          // all the room there was is filled: the stack may go on above
};

// Where a walk of user frames ended that the source did itself. kUnknown: a walk by frame pointers cannot tell.
enum class WalkEnd : uint8_t {
  kUnknown,
  kComplete,
  kNoRegisters,  // no user stack: a kernel thread
  kMaxDepth,
  kNoMapping,
  kNoUnwindInfo,
  kBadUnwindInfo,
  kUnreadableMemory,
  kNoProgress,
  kBadPc,
  kExecInProgress,
  kUnsupportedAbi,
};

// A stack that later events of this process name by its id instead of repeating it. Described before its first use; the
// same id again replaces it. Its addresses are those of the mappings at this time.
struct StackDef {
  uint64_t time_ns = 0;
  Task task = {};                                // its pid counts
  uint64_t id = 0;                               // not 0
  std::span<const uint64_t> kernel_chain = {};   // as in Sample
  std::span<const uint64_t> user_chain = {};
  WalkEnd user_end = WalkEnd::kUnknown;
};

struct Sample {
  uint64_t time_ns = 0;
  Task task = {};
  uint32_t cpu = 0;
  uint32_t metric = 0;
  uint64_t period = 1;                      // weight in the metric's unit
  uint64_t ip = 0;
  bool in_kernel = false;                   // the sampled instruction was kernel code
  std::span<const uint64_t> kernel_chain = {};   // leaf first, no context markers
  std::span<const uint64_t> user_chain = {};     // leaf first, as the kernel or BPF walked it; first is the exact user pc
  std::optional<Snapshot> snapshot = {};
  uint64_t stack_id = 0;                         // not 0: a StackDef of this process is the stack, both chains are empty
  bool repeats_stack = false;                    // another metric of the Sample before, whose stack it is
};

// Samples of one stack that were counted where they were taken, since the last Count of it: they have no times.
struct Count {
  uint64_t time_ns = 0;      // when the counter was read
  Task task = {};
  uint32_t metric = 0;
  uint64_t samples = 0;
  uint64_t weight = 0;       // in the metric's unit
  uint64_t stack_id = 0;     // 0: no stack
  bool in_kernel = false;
};

// Stack memory outside the next Sample's snapshot, read from the live thread (an interrupted stack below a signal
// handler's alternate stack). Applies to the next Sample of this task only.
struct StackMemory {
  uint64_t time_ns = 0;
  Task task = {};
  uint64_t address = 0;
  std::span<const std::byte> bytes = {};
};

struct FileId {
  uint32_t major = 0, minor = 0;
  uint64_t inode = 0;
  uint64_t generation = 0;
  auto operator<=>(const FileId&) const = default;
};

struct Mmap {
  uint64_t time_ns = 0;
  Task task = {};                             // pid -1: the kernel or a module
  uint64_t start = 0, length = 0, file_offset = 0;
  uint32_t protection = 0, flags = 0;    // PROT_*, MAP_*
  FileId file = {};                         // all zero: anonymous
  std::span<const std::byte> build_id = {};   // empty when the kernel did not give it
  std::string_view path = {};                 // "/usr/bin/x", "[vdso]", "//anon", "[kernel.kallsyms]_text"
};

struct Comm {
  uint64_t time_ns = 0;
  Task task = {};
  std::string_view name = {};
  bool exec = false;  // the process image was replaced; mappings before it are gone
};

struct Fork {
  uint64_t time_ns = 0;
  Task child = {}, parent = {};  // same pid: a new thread
};

// Where a process lies among the control groups, by which containers are told. A child is where its parent is.
struct Cgroup {
  uint64_t time_ns = 0;
  Task task = {};              // its pid counts
  std::string_view path = {};  // "/system.slice/docker-4f1e...scope"
};

// Code of the kernel that came, or went, while it ran: a BPF program, for instance.
struct KernelSymbol {
  uint64_t time_ns = 0;
  uint64_t start = 0;
  uint32_t length = 0;
  std::string_view name = {};  // "bpf_prog_6deef7357e7b4530_sd_fw"
  bool is_removed = false;
};

struct Exit {
  uint64_t time_ns = 0;
  Task task = {};
};

struct SwitchOut {
  uint64_t time_ns = 0;
  Task task = {};
  uint32_t cpu = 0;
  bool preempted = false;  // still runnable
  uint64_t stack_id = 0;   // where it left the CPU, when the source walked that; else a sample of context-switches tells
  bool uninterruptible = false;  // it waits in a way that no signal ends, as far as the source tells
};

struct SwitchIn {
  uint64_t time_ns = 0;
  Task task = {};
  uint32_t cpu = 0;
  uint64_t woken_ns = 0;   // 0: not told here; a Wakeup may have
  Task waker = {};         // pid 0: an interrupt, or unknown
};

// A waiting thread became runnable.
struct Wakeup {
  uint64_t time_ns = 0;
  Task task = {};          // pid -1: only the tid is told
  Task waker = {};         // pid 0: an interrupt, or unknown
};

enum class LostKind : uint8_t { kRecords, kSamples };

struct Lost {
  uint64_t time_ns = 0;
  uint32_t cpu = 0;
  LostKind kind = LostKind::kRecords;
  uint64_t count = 0;
};

struct Throttle {
  uint64_t time_ns = 0;
  uint32_t cpu = 0;
  bool on = false;
};

using Event = std::variant<Sample, StackMemory, Mmap, Comm, Fork, Exit, SwitchOut, SwitchIn, Lost, Throttle, StackDef, Count, Wakeup, Cgroup,
                           KernelSymbol>;

uint64_t time_of(const Event& event);

// Deep equality: what spans and views hold, not where they point.
bool equal(const Event& a, const Event& b);

// Receives one run: begin once, events in time order, finish once (also after an interrupt). One thread.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual Result<void> begin(const SessionInfo& info) = 0;
  virtual Result<void> on_event(const Event& event) = 0;
  // Everything before this time has been delivered: a good moment for periodic work.
  virtual Result<void> on_round(uint64_t /*time_ns*/) { return {}; }
  virtual Result<void> finish(uint64_t end_ns) = 0;
};

// A finished recording that plays itself into a sink: a perf.data file, for instance.
class EventSource {
 public:
  virtual ~EventSource() = default;
  virtual Result<void> run(EventSink& sink, Diagnostics& diagnostics) = 0;
};

// Live collection. open() acquires everything and fails with the reason; poll() delivers what has come within the
// timeout; close() stops, drains and calls sink.finish(). All calls on one thread.
class Collector {
 public:
  virtual ~Collector() = default;
  virtual Result<void> open(EventSink& sink) = 0;   // calls sink.begin, then describes what already runs
  virtual Result<void> start() = 0;                 // sampling on; a command target starts to run
  virtual Result<bool> poll(int timeout_ms) = 0;    // false: nothing is left to record
  virtual Result<void> close() = 0;
  virtual const Diagnostics& diagnostics() const = 0;
};

}  // namespace cprof::event
