// The BPF object: loading it with the settings of a run, its maps, its rings, attaching its programs. All is undone when
// this goes, or by the kernel when the process dies. Used by BpfCollector, on one thread. Never prints: what libbpf says
// becomes the error's text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "collect/bpf/object_bytes.h"
#include "collect/bpf/walk_maps.h"

struct bpf_object;
struct bpf_link;
struct bpf_map;
struct bpf_program;

namespace cprof::collect {

class SamplerObject {
 public:
  // The first variant that this kernel takes; only_variant: that one, for tests.
  static Result<std::unique_ptr<SamplerObject>> load(const sampler_settings& settings,
                                                     std::optional<SamplerVariant> only_variant = {});
  ~SamplerObject();
  SamplerObject(const SamplerObject&) = delete;
  SamplerObject& operator=(const SamplerObject&) = delete;

  Result<void> attach_tracepoints();             // those that the settings ask for
  Result<void> attach_sampler(Fd perf_event);    // which begins
  void detach_samplers();
  Result<void> set_cgroup(int cgroup_fd);
  bool add_task(int32_t tid, bool on);           // false: no room
  void turn(bool on) { walk_->control().on = on; }

  WalkMaps& walk() { return *walk_; }
  // Why it is not the full variant, in the kernel's words; empty when it is.
  const std::string& full_refused() const { return full_refused_; }

  // Gives what was counted into the map that has been out of use since the last call, and lets the other take its place:
  // programs that were still counting into it then have long ended. Each count is given once; two calls after the
  // samplers are detached give all.
  using OnCount = std::function<void(const sampler_count_key&, const sampler_count&)>;
  void take_counts(const OnCount& on_count);

 private:
  SamplerObject() = default;
  static Result<std::unique_ptr<SamplerObject>> load_variant(const sampler_settings& settings, SamplerVariant variant);
  Result<void> open_and_load(const sampler_settings& settings, SamplerVariant variant);
  void fit_to_settings();
  int map_fd(const char* name) const;

  bpf_object* object_ = nullptr;
  sampler_settings settings_{};
  std::string full_refused_;
  std::vector<bpf_link*> tracepoints_, samplers_;
  std::unique_ptr<WalkMaps> walk_;
};

}  // namespace cprof::collect
