// The BPF object that counts and times calls of user functions: loading it, its probes, its sums, the calls it tells. All
// is undone when this goes. Used by uprobe::Tracer and its calibration, on one thread. Which places are probed is the
// caller's business: a probe at what is not the first byte of an instruction breaks the target. Never prints.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collect/bpf/ring_reader.h"
#include "collect/bpf/uprobe_abi.h"
#include "collect/bpf/uprobe_links.h"
#include "collect/bpf/walk_maps.h"

struct bpf_object;

namespace cprof::collect {

class UprobeObject {
 public:
  struct Sizes {
    uint32_t sites = 1, functions = 1;
    bool is_multi = false;  // how probes will be attached
  };
  static Result<std::unique_ptr<UprobeObject>> load(const uprobe_settings& settings, const Sizes& sizes);
  ~UprobeObject();
  UprobeObject(const UprobeObject&) = delete;
  UprobeObject& operator=(const UprobeObject&) = delete;

  std::span<uprobe_site> sites() { return sites_; }  // to be filled in before they are probed
  Result<void> add_target(uint32_t id);              // pid or tid, as the filter says
  Result<void> set_cgroup(int cgroup_fd);

  // Follows forks, execs and ends of threads, where the settings ask for it; before the first probe.
  Result<void> start();
  // With has_stacks: what the walk goes by and where its records come. Null without.
  WalkMaps* walk() { return walk_.get(); }
  UprobeLinks& links() { return *links_; }

  uprobe_row row(uint32_t function) const;  // over all shards
  void add_histogram(uint32_t function, std::span<uint64_t, UPROBE_BUCKETS> into) const;
  std::array<uint64_t, UPROBE_COUNTERS> counters() const;
  Result<std::vector<std::pair<uprobe_caller_key, uprobe_caller>>> callers() const;

  // Each call that ended and was to be told; in the order of their ends, as far as one CPU goes.
  void read_calls(const std::function<void(const uprobe_call&)>& on_call);
  // Those that are going on come through read_calls() as well then.
  Result<void> tell_open_calls();

 private:
  UprobeObject() = default;
  Result<void> open_and_load(const uprobe_settings& settings, const Sizes& sizes);
  Result<void> map_arrays(const Sizes& sizes);
  int map_fd(const char* name) const;

  bpf_object* object_ = nullptr;
  uprobe_settings settings_{};
  std::unique_ptr<UprobeLinks> links_;
  std::vector<bpf_link*> others_;
  RingReader ring_;
  std::unique_ptr<WalkMaps> walk_;
  std::vector<std::span<std::byte>> mapped_;
  std::span<uprobe_site> sites_;
  std::span<const uprobe_row> rows_;
  std::span<const uprobe_histogram> histograms_;
};

}  // namespace cprof::collect
