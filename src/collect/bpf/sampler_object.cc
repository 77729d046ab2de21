#include "collect/bpf/sampler_object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collect/bpf/bpf_messages.h"
#include "collect/bpf/built_in_object.h"
#include "collect/bpf/object_bytes.h"

namespace cprof::collect {
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
  object->walk_ = TRY(WalkMaps::make(*object->object_, settings.ring_bytes));
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
  WalkMaps::fit(*object_);
}

int SamplerObject::map_fd(const char* name) const { return bpf_object__find_map_fd_by_name(object_, name); }

SamplerObject::~SamplerObject() {
  detach_samplers();
  for (bpf_link* link : tracepoints_) bpf_link__destroy(link);
  walk_.reset();
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

void SamplerObject::take_counts(const OnCount& on_count) {
  int map = map_fd(walk_->control().counts ? "counts_0" : "counts_1");
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
  __atomic_store_n(&walk_->control().counts, walk_->control().counts ? 0u : 1u, __ATOMIC_RELEASE);
}

}  // namespace cprof::collect
