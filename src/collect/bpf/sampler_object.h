// The BPF object: loading it with the settings of a run, its maps, its rings, attaching its programs. All is undone when
// this goes, or by the kernel when the process dies. Used by BpfCollector, on one thread. Never prints: what libbpf says
// becomes the error's text.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "collect/bpf/object_bytes.h"
#include "collect/bpf/ring_reader.h"
#include "collect/bpf/sampler_maps.h"

struct bpf_object;
struct bpf_link;
struct bpf_map;
struct bpf_program;

namespace cprof::collect {

class SamplerObject final : public SamplerMaps {
 public:
  // The first variant that this kernel takes; only_variant: that one, for tests.
  static Result<std::unique_ptr<SamplerObject>> load(const sampler_settings& settings,
                                                     std::optional<SamplerVariant> only_variant = {});
  ~SamplerObject() override;

  Result<void> attach_tracepoints();             // those that the settings ask for
  Result<void> attach_sampler(Fd perf_event);    // which begins
  void detach_samplers();
  Result<void> set_cgroup(int cgroup_fd);
  bool add_task(int32_t tid, bool on);           // false: no room
  void turn(bool on) { control_->on = on; }

  // A ring for each of these CPUs that has none yet.
  Result<void> add_rings(std::span<const int> cpus);
  RingReader& rings() { return ring_reader_; }
  // Why it is not the full variant, in the kernel's words; empty when it is.
  const std::string& full_refused() const { return full_refused_; }

  std::array<uint64_t, SAMPLER_COUNTERS> counters() const;   // over all CPUs
  // Gives what was counted into the map that has been out of use since the last call, and lets the other take its place:
  // programs that were still counting into it then have long ended. Each count is given once; two calls after the
  // samplers are detached give all.
  using OnCount = std::function<void(const sampler_count_key&, const sampler_count&)>;
  void take_counts(const OnCount& on_count);
  // Every stack is sent again when it is met next.
  void repeat_stacks();

  Result<std::span<uint32_t>> add_chunk() override;
  std::span<cp_rule> rules() override { return rules_; }
  std::span<sampler_module> modules() override { return modules_; }
  std::span<sampler_mapping> mappings() override { return mappings_; }
  Result<void> set_process(int32_t pid, const sampler_process& process) override;
  void drop_process(int32_t pid) override;
  void set_file(const sampler_file_key& key, uint32_t module) override;

 private:
  struct Region {
    void* address = nullptr;
    size_t bytes = 0;
  };

  SamplerObject() = default;
  static Result<std::unique_ptr<SamplerObject>> load_variant(const sampler_settings& settings, SamplerVariant variant);
  Result<void> open_and_load(const sampler_settings& settings, SamplerVariant variant);
  void fit_to_settings();
  Result<void> map_tables();
  Result<void*> map_memory(int fd, size_t bytes);
  int map_fd(const char* name) const;

  bpf_object* object_ = nullptr;
  sampler_settings settings_{};
  std::string full_refused_;
  sampler_control* control_ = nullptr;
  std::vector<bpf_link*> tracepoints_, samplers_;
  std::vector<Region> regions_;
  std::vector<Fd> chunk_maps_, ring_maps_;
  std::vector<int> ring_cpus_;
  std::span<cp_rule> rules_;
  std::span<sampler_module> modules_;
  std::span<sampler_mapping> mappings_;
  std::span<uint64_t> sent_;
  RingReader ring_reader_;
};

}  // namespace cprof::collect
