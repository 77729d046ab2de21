#include "collect/bpf/cpustat_object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collect/bpf/bpf_messages.h"
#include "collect/bpf/built_in_object.h"
#include "collect/bpf/map_pairs.h"
#include "collect/bpf/object_bytes.h"

namespace cprof::collect {

Result<std::unique_ptr<CpustatObject>> CpustatObject::load(const cpustat_settings& settings, uint32_t most_threads) {
  std::unique_ptr<CpustatObject> object(new CpustatObject());
  TRY(object->open_and_load(settings, most_threads));
  return object;
}

CpustatObject::~CpustatObject() {
  for (bpf_link* link : links_) bpf_link__destroy(link);
  bpf_object__close(object_);
}

Result<void> CpustatObject::open_and_load(const cpustat_settings& settings, uint32_t most_threads) {
  object_ = TRY(open_built_in(cpustat_object_bytes(), "cprof_cpustat", std::as_bytes(std::span(&settings, 1))));
  bpf_map__set_max_entries(bpf_object__find_map_by_name(object_, "threads"), most_threads);
  if (settings.filter == CPUSTAT_ALL || settings.filter == CPUSTAT_CGROUP)
    bpf_map__set_max_entries(bpf_object__find_map_by_name(object_, "targets"), 1);
  TRY(load_built_in(object_));
  threads_fd_ = map_fd("threads");
  look_fd_ = bpf_program__fd(bpf_object__find_program_by_name(object_, "on_look"));
  return {};
}

int CpustatObject::map_fd(const char* name) const { return bpf_object__find_map_fd_by_name(object_, name); }

Result<void> CpustatObject::add_target(uint32_t id) {
  const uint32_t on = 1;
  if (bpf_map_update_elem(map_fd("targets"), &id, &on, BPF_ANY) == 0) return {};
  return bpf_failure("telling the program of a process", errno);
}

Result<void> CpustatObject::set_cgroup(int cgroup_fd) {
  const uint32_t key = 0, value = static_cast<uint32_t>(cgroup_fd);
  if (bpf_map_update_elem(map_fd("cgroup"), &key, &value, BPF_ANY) == 0) return {};
  return fail_errno("--cgroup: not a directory of the cgroup v2 hierarchy");
}

// The switches last: a thread's life is known before its time is counted.
Result<void> CpustatObject::start() {
  for (const char* program : {"on_fork", "on_exec", "on_exit", "on_waking", "on_switch"}) links_.push_back(TRY(attach_built_in(object_, program)));
  return note_existing_threads();
}

Result<void> CpustatObject::note_existing_threads() { return run_built_in_iterator(object_, "on_task", "listing the threads"); }

Result<void> CpustatObject::read_threads(std::vector<cpustat_thread>& into) {
  TRY(read_pairs(threads_fd_, false, keys_, into));
  look_at_running(into);
  return {};
}

// The kernel adds to a thread's accounts at each tick, but the programs see them when it leaves its CPU: they are run there.
void CpustatObject::look_at_running(std::span<cpustat_thread> threads) {
  std::vector<uint32_t> cpus;
  auto runs = [](const cpustat_thread& thread) { return thread.state == CPUSTAT_RUNNING && thread.ended_ns == 0; };
  for (const cpustat_thread& thread : threads)
    if (runs(thread)) cpus.push_back(thread.cpu);
  std::ranges::sort(cpus);
  const auto repeated = std::ranges::unique(cpus);
  cpus.erase(repeated.begin(), repeated.end());
  for (uint32_t cpu : cpus) {
    bpf_test_run_opts options{};
    options.sz = sizeof(options);
    options.flags = BPF_F_TEST_RUN_ON_CPU;
    options.cpu = cpu;
    (void)bpf_prog_test_run_opts(look_fd_, &options);  // a CPU that has gone offline runs nothing
  }
  for (cpustat_thread& thread : threads)
    if (runs(thread)) (void)bpf_map_lookup_elem(threads_fd_, &thread.tid, &thread);
}

void CpustatObject::forget(std::span<const uint32_t> tids) {
  for (uint32_t tid : tids) bpf_map_delete_elem(threads_fd_, &tid);
}

Result<void> CpustatObject::take_new_stacks(const std::function<void(uint64_t, std::span<const uint64_t>)>& on_stack) {
  std::vector<uint64_t> ids;
  std::vector<cpustat_stack> stacks;
  auto done = read_pairs(map_fd("new_stacks"), true, ids, stacks);
  for (size_t i = 0; i < ids.size(); i++)
    on_stack(ids[i], std::span(stacks[i].addresses, std::min<size_t>(stacks[i].count, CPUSTAT_MAX_FRAMES)));
  return done;
}

bool CpustatObject::tell_class(uint64_t stack, uint32_t wait_class) {
  return bpf_map_update_elem(map_fd("classes"), &stack, &wait_class, BPF_ANY) == 0;
}

Result<void> CpustatObject::take_pending(const std::function<void(const cpustat_pending_key&, uint64_t)>& on_wait) {
  std::vector<cpustat_pending_key> waits;
  std::vector<uint64_t> sums;
  auto done = read_pairs(map_fd("pending"), true, waits, sums);
  for (size_t i = 0; i < waits.size(); i++) on_wait(waits[i], sums[i]);
  return done;
}

std::array<uint64_t, CPUSTAT_COUNTERS> CpustatObject::counters() const {
  std::array<uint64_t, CPUSTAT_COUNTERS> sums{};
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) return sums;
  std::vector<uint64_t> values(static_cast<size_t>(cpus));
  for (uint32_t key = 0; key < CPUSTAT_COUNTERS; key++) {
    if (bpf_map_lookup_elem(map_fd("counters"), &key, values.data()) != 0) continue;
    for (uint64_t value : values) sums[key] += value;
  }
  return sums;
}

}  // namespace cprof::collect
