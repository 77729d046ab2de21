#include "collect/bpf/walk_maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "collect/bpf/bpf_messages.h"

namespace cprof::collect {
namespace {

constexpr size_t kChunkBytes = SAMPLER_CHUNK_WORDS * sizeof(uint32_t);

}  // namespace

void report_counters(std::span<const CounterWords> rows, std::span<const uint64_t> counters, Diagnostics& diagnostics) {
  for (const CounterWords& row : rows)
    if (counters[row.counter]) diagnostics.add(row.name, row.severity, row.description, counters[row.counter]);
}

void WalkMaps::fit(bpf_object& object) {
  const auto cpus = static_cast<uint32_t>(std::clamp(libbpf_num_possible_cpus(), 1, SAMPLER_MAX_CPUS));
  bpf_map__set_max_entries(bpf_object__find_map_by_name(&object, "scratches"), cpus * SAMPLER_SLOTS);
}

Result<std::unique_ptr<WalkMaps>> WalkMaps::make(bpf_object& object, uint32_t ring_bytes) {
  std::unique_ptr<WalkMaps> maps(new WalkMaps(object, ring_bytes));
  TRY(maps->map_tables());
  return maps;
}

WalkMaps::~WalkMaps() {
  ring_reader_.stop();
  for (const Region& region : regions_) munmap(region.address, region.bytes);
}

int WalkMaps::map_fd(const char* name) const { return bpf_object__find_map_fd_by_name(&object_, name); }

Result<void*> WalkMaps::map_memory(int fd, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return fail_errno("bpf: mapping a table of the program");
  regions_.push_back({memory, bytes});
  return memory;
}

Result<void> WalkMaps::map_tables() {
  rules_ = {static_cast<cp_rule*>(TRY(map_memory(map_fd("rules"), SAMPLER_MAX_RULES * sizeof(cp_rule)))), SAMPLER_MAX_RULES};
  modules_ = {static_cast<sampler_module*>(TRY(map_memory(map_fd("modules"), SAMPLER_MAX_MODULES * sizeof(sampler_module)))),
              SAMPLER_MAX_MODULES};
  mappings_ = {static_cast<sampler_mapping*>(TRY(map_memory(map_fd("mappings"), SAMPLER_MAX_MAPPINGS * sizeof(sampler_mapping)))),
               SAMPLER_MAX_MAPPINGS};
  sent_ = {static_cast<uint64_t*>(TRY(map_memory(map_fd("sent"), SAMPLER_SENT_SLOTS * sizeof(uint64_t)))), SAMPLER_SENT_SLOTS};
  control_ = static_cast<sampler_control*>(TRY(map_memory(map_fd(".data.control"), static_cast<size_t>(sysconf(_SC_PAGESIZE)))));
  ring_reader_.tell_behind_in(&control_->is_behind);
  return {};
}

Result<void> WalkMaps::add_rings(std::span<const int> cpus) {
  for (int cpu : cpus) {
    if (std::ranges::find(ring_cpus_, cpu) != ring_cpus_.end()) continue;
    if (cpu >= SAMPLER_MAX_CPUS) return fail(fmt::format("not supported: CPU {} with the bpf backend", cpu), ENOTSUP);
    Fd map(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "cprof_ring", 0, 0, ring_bytes_, nullptr));
    if (!map) return bpf_failure("making a ring buffer", errno);
    uint32_t key = static_cast<uint32_t>(cpu);
    int value = map.get();
    if (bpf_map_update_elem(map_fd("rings"), &key, &value, BPF_ANY) != 0) return bpf_failure("installing a ring buffer", errno);
    TRY(ring_reader_.add(map.get()));
    ring_maps_.push_back(std::move(map));
    ring_cpus_.push_back(cpu);
  }
  return {};
}

std::array<uint64_t, SAMPLER_COUNTERS> WalkMaps::counters() const {
  std::array<uint64_t, SAMPLER_COUNTERS> sums{};
  int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) return sums;
  std::vector<uint64_t> values(static_cast<size_t>(cpus));
  for (uint32_t key = 0; key < SAMPLER_COUNTERS; key++) {
    if (bpf_map_lookup_elem(map_fd("counters"), &key, values.data()) != 0) continue;
    for (uint64_t value : values) sums[key] += value;
  }
  return sums;
}

Result<std::span<uint32_t>> WalkMaps::add_chunk() {
  uint32_t key = static_cast<uint32_t>(chunk_maps_.size());
  if (key >= SAMPLER_MAX_CHUNKS) return fail("the BPF program's store of unwind tables is full", ENOSPC);
  bpf_map_create_opts options{};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_MMAPABLE;
  Fd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "cprof_rows", sizeof(uint32_t), kChunkBytes, 1, &options));
  if (!map) return bpf_failure("making room for unwind tables", errno);
  auto* words = static_cast<uint32_t*>(TRY(map_memory(map.get(), kChunkBytes)));
  int value = map.get();
  if (bpf_map_update_elem(map_fd("store"), &key, &value, BPF_ANY) != 0) return bpf_failure("installing unwind tables", errno);
  chunk_maps_.push_back(std::move(map));
  return std::span(words, SAMPLER_CHUNK_WORDS);
}

Result<void> WalkMaps::set_process(int32_t pid, const sampler_process& process) {
  uint32_t key = static_cast<uint32_t>(pid);
  if (bpf_map_update_elem(map_fd("processes"), &key, &process, BPF_ANY) == 0) return {};
  return bpf_failure("telling the program of a process", errno);
}

void WalkMaps::drop_process(int32_t pid) {
  uint32_t key = static_cast<uint32_t>(pid);
  bpf_map_delete_elem(map_fd("processes"), &key);
  bpf_map_delete_elem(map_fd("execs"), &key);
}

void WalkMaps::set_file(const sampler_file_key& key, uint32_t module) {
  if (module) bpf_map_update_elem(map_fd("files"), &key, &module, BPF_ANY);
  else bpf_map_delete_elem(map_fd("files"), &key);
}

void WalkMaps::repeat_stacks() {
  for (uint64_t& id : sent_) __atomic_store_n(&id, 0, __ATOMIC_RELAXED);
}

}  // namespace cprof::collect
