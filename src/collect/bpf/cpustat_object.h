// The BPF object that sums up what threads do with their time: loading it for a target, attaching it, reading its sums. All
// is undone when this goes. Used by cpustat::BpfSource, on one thread. Never prints.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collect/bpf/cpustat_abi.h"

struct bpf_object;
struct bpf_link;
struct bpf_program;

namespace cprof::collect {

class CpustatObject {
 public:
  // most_threads: room for that many at once, and for those that end within an interval.
  static Result<std::unique_ptr<CpustatObject>> load(const cpustat_settings& settings, uint32_t most_threads);
  ~CpustatObject();
  CpustatObject(const CpustatObject&) = delete;
  CpustatObject& operator=(const CpustatObject&) = delete;

  Result<void> add_target(uint32_t id);  // pid or tid, as the filter says
  Result<void> set_cgroup(int cgroup_fd);
  // Follows switches from now on, then notes every thread that exists.
  Result<void> start();

  // Every thread that lives, or ended and was not forgotten; those on a CPU with their accounts up to now.
  Result<void> read_threads(std::vector<cpustat_thread>& into);
  void forget(std::span<const uint32_t> tids);

  // Stacks whose class the programs want to know; told by tell_class().
  Result<void> take_new_stacks(const std::function<void(uint64_t id, std::span<const uint64_t> addresses)>& on_stack);
  bool tell_class(uint64_t stack, uint32_t wait_class);  // false: no room, waits on it go on to come by stack
  // Waits on stacks that had no class when they ended; each is given once.
  Result<void> take_pending(const std::function<void(const cpustat_pending_key&, uint64_t ns)>& on_wait);

  std::array<uint64_t, CPUSTAT_COUNTERS> counters() const;  // over all CPUs

 private:
  CpustatObject() = default;
  Result<void> open_and_load(const cpustat_settings& settings, uint32_t most_threads);
  Result<void> note_existing_threads();
  void look_at_running(std::span<cpustat_thread> threads);
  int map_fd(const char* name) const;

  bpf_object* object_ = nullptr;
  std::vector<bpf_link*> links_;
  int threads_fd_ = -1, look_fd_ = -1;
  std::vector<uint32_t> keys_;
};

}  // namespace cprof::collect
