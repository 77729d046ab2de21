#include "collect/bpf/sampler_object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collect/bpf/bpf_messages.h"
#include "collect/bpf/built_in_object.h"
#include "collect/bpf/object_bytes.h"

namespace cprof::collect {
namespace {

constexpr size_t kChunkBytes = SAMPLER_CHUNK_WORDS * sizeof(uint32_t);

}  // namespace

// What a kernel can do is best found out by trying: distributions add to old ones.
Result<std::unique_ptr<SamplerObject>> SamplerObject::load(const sampler_settings& settings,
                                                           std::optional<SamplerVariant> only_variant) {
  if (only_variant) return load_variant(settings, *only_variant);
  auto full = load_variant(settings, SamplerVariant::kFull);
  if (full) return full;
  auto older = TRY(load_variant(settings, SamplerVariant::kFor510));
  older->full_refused_ = full.error().message;
  return older;
}

Result<std::unique_ptr<SamplerObject>> SamplerObject::load_variant(const sampler_settings& settings, SamplerVariant variant) {
  std::unique_ptr<SamplerObject> object(new SamplerObject());
  TRY(object->open_and_load(settings, variant));
  TRY(object->map_tables());
  return object;
}

Result<void> SamplerObject::open_and_load(const sampler_settings& settings, SamplerVariant variant) {
  settings_ = settings;
  object_ = TRY(open_built_in(sampler_object_bytes(variant), "cprof", std::as_bytes(std::span(&settings, 1))));
  fit_to_settings();
  return load_built_in(object_);
}

// What this run does not use is not loaded and takes no memory.
void SamplerObject::fit_to_settings() {
  for (const char* name : {"on_switch", "on_wakeup"})
    bpf_program__set_autoload(bpf_object__find_program_by_name(object_, name), settings_.off_cpu);
  auto shrink = [this](bool is_used, std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (!is_used) bpf_map__set_max_entries(bpf_object__find_map_by_name(object_, name), 1);
  };
  shrink(settings_.count_only, {"counts_0", "counts_1"});
  shrink(settings_.off_cpu, {"waits"});
  shrink(settings_.filter == SAMPLER_TASKS, {"tasks"});
  uint32_t cpus = static_cast<uint32_t>(std::clamp(libbpf_num_possible_cpus(), 1, SAMPLER_MAX_CPUS));
  bpf_map__set_max_entries(bpf_object__find_map_by_name(object_, "scratches"), cpus * SAMPLER_SLOTS);
}

int SamplerObject::map_fd(const char* name) const { return bpf_object__find_map_fd_by_name(object_, name); }

Result<void*> SamplerObject::map_memory(int fd, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return fail_errno("bpf: mapping a table of the program");
  regions_.push_back({memory, bytes});
  return memory;
}

Result<void> SamplerObject::map_tables() {
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

SamplerObject::~SamplerObject() {
  detach_samplers();
  ring_reader_.stop();
  for (bpf_link* link : tracepoints_) bpf_link__destroy(link);
  for (const Region& region : regions_) munmap(region.address, region.bytes);
  if (object_) bpf_object__close(object_);
}

Result<void> SamplerObject::attach_tracepoints() {
  for (const char* program : {"on_fork", "on_exec", "on_exit"}) tracepoints_.push_back(TRY(attach_built_in(object_, program)));
  if (!settings_.off_cpu) return {};
  for (const char* program : {"on_wakeup", "on_switch"}) tracepoints_.push_back(TRY(attach_built_in(object_, program)));
  return {};
}

Result<void> SamplerObject::attach_sampler(Fd perf_event) {
  BpfMessages messages;
  bpf_program* program = bpf_object__find_program_by_name(object_, "on_sample");
  bpf_link* link = bpf_program__attach_perf_event(program, perf_event.get());
  if (!link) return bpf_failure("attaching the sampler to a perf event", errno, &messages);
  perf_event.release();  // the link closes it
  samplers_.push_back(link);
  return {};
}

void SamplerObject::detach_samplers() {
  for (bpf_link* link : samplers_) bpf_link__destroy(link);
  samplers_.clear();
}

Result<void> SamplerObject::set_cgroup(int cgroup_fd) {
  uint32_t key = 0, value = static_cast<uint32_t>(cgroup_fd);
  if (bpf_map_update_elem(map_fd("cgroup"), &key, &value, BPF_ANY) == 0) return {};
  return fail_errno("--cgroup with the bpf backend: not a directory of the cgroup v2 hierarchy");
}

bool SamplerObject::add_task(int32_t tid, bool on) {
  uint32_t key = static_cast<uint32_t>(tid);
  sampler_task task{on};
  return bpf_map_update_elem(map_fd("tasks"), &key, &task, BPF_ANY) == 0;
}

Result<void> SamplerObject::add_rings(std::span<const int> cpus) {
  for (int cpu : cpus) {
    if (std::ranges::find(ring_cpus_, cpu) != ring_cpus_.end()) continue;
    if (cpu >= SAMPLER_MAX_CPUS) return fail(fmt::format("not supported: CPU {} with the bpf backend", cpu), ENOTSUP);
    Fd map(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "cprof_ring", 0, 0, settings_.ring_bytes, nullptr));
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

std::array<uint64_t, SAMPLER_COUNTERS> SamplerObject::counters() const {
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

Result<std::span<uint32_t>> SamplerObject::add_chunk() {
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

Result<void> SamplerObject::set_process(int32_t pid, const sampler_process& process) {
  uint32_t key = static_cast<uint32_t>(pid);
  if (bpf_map_update_elem(map_fd("processes"), &key, &process, BPF_ANY) == 0) return {};
  return bpf_failure("telling the program of a process", errno);
}

void SamplerObject::drop_process(int32_t pid) {
  uint32_t key = static_cast<uint32_t>(pid);
  bpf_map_delete_elem(map_fd("processes"), &key);
  bpf_map_delete_elem(map_fd("execs"), &key);
}

void SamplerObject::set_file(const sampler_file_key& key, uint32_t module) {
  if (module) bpf_map_update_elem(map_fd("files"), &key, &module, BPF_ANY);
  else bpf_map_delete_elem(map_fd("files"), &key);
}

void SamplerObject::repeat_stacks() {
  for (uint64_t& id : sent_) __atomic_store_n(&id, 0, __ATOMIC_RELAXED);
}

void SamplerObject::take_counts(const OnCount& on_count) {
  int map = map_fd(control_->counts ? "counts_0" : "counts_1");
  std::vector<sampler_count_key> keys;
  sampler_count_key key{};
  for (const sampler_count_key* before = nullptr; bpf_map_get_next_key(map, before, &key) == 0; before = &keys.back())
    keys.push_back(key);
  for (const sampler_count_key& counted : keys) {
    sampler_count value{};
    if (bpf_map_lookup_elem(map, &counted, &value) != 0) continue;
    bpf_map_delete_elem(map, &counted);
    on_count(counted, value);
  }
  __atomic_store_n(&control_->counts, control_->counts ? 0u : 1u, __ATOMIC_RELEASE);
}

}  // namespace cprof::collect
