// The maps that every BPF object has which walks stacks (walk_maps.bpf.h), once it is loaded: tables, rings, what is told of
// processes. Used by the classes of such objects, which outlive it with their object, and through them by WalkStream; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/diagnostics.h"
#include "base/fd.h"
#include "collect/bpf/ring_reader.h"
#include "collect/bpf/sampler_maps.h"

struct bpf_object;

namespace cprof::collect {

// A counter of the programs that is a loss, or worth a note, where it is not 0.
struct CounterWords {
  sampler_counter counter;
  Severity severity;
  const char *name, *description;
};
void report_counters(std::span<const CounterWords> rows, std::span<const uint64_t> counters, Diagnostics& diagnostics);

class WalkMaps final : public SamplerMaps {
 public:
  // Before the object is loaded: as many places to walk in as there are CPUs.
  static void fit(bpf_object& object);
  // ring_bytes: of each CPU's ring, as the object's settings say.
  static Result<std::unique_ptr<WalkMaps>> make(bpf_object& object, uint32_t ring_bytes);
  ~WalkMaps() override;
  WalkMaps(const WalkMaps&) = delete;
  WalkMaps& operator=(const WalkMaps&) = delete;

  sampler_control& control() { return *control_; }
  // A ring for each of these CPUs that has none yet.
  Result<void> add_rings(std::span<const int> cpus);
  RingReader& rings() { return ring_reader_; }
  std::array<uint64_t, SAMPLER_COUNTERS> counters() const;  // over all CPUs
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

  WalkMaps(bpf_object& object, uint32_t ring_bytes) : object_(object), ring_bytes_(ring_bytes) {}
  Result<void> map_tables();
  Result<void*> map_memory(int fd, size_t bytes);
  int map_fd(const char* name) const;

  bpf_object& object_;
  uint32_t ring_bytes_;
  sampler_control* control_ = nullptr;
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
