// The stacks that a process's events name by an id, already interned: id -> call site and how the walk ended. Called by
// the pipeline. An ended process keeps its own for some seconds, since what was counted of it may be read only then. What its
// source has stopped to repeat goes. The number of definitions is bounded; what comes beyond it is counted, and its samples
// have no stack.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "base/diagnostics.h"
#include "base/number_map.h"
#include "profile/profile.h"
#include "space/tracker.h"

namespace cprof::pipeline {

struct KnownStack {
  profile::CallSiteId site;
  profile::StackEnd end = profile::StackEnd::kNotUnwound;
};

class StackDefs {
 public:
  static constexpr size_t kMostDefinitions = size_t{1} << 22;

  explicit StackDefs(Diagnostics& diagnostics, size_t most = kMostDefinitions) : diagnostics_(diagnostics), most_(most) {}

  void define(const space::Process& process, uint64_t id, const KnownStack& stack, uint64_t time_ns);
  // Without a definition: an invalid site, counted.
  KnownStack find(const space::Process& process, uint64_t id);

  void process_ended(const space::Process& process, uint64_t time_ns) { ended_.push_back({time_ns, process.serial}); }
  void forget_ended(uint64_t now_ns);
  void forget_defined_before(uint64_t time_ns);
  // The serial of the process that this id was defined of, when process does not have it: the one that had its pid before.
  std::optional<uint32_t> other_owner(const space::Process& process, uint64_t id) const;
  size_t size() const { return size_; }

  // A call site's number changed: site(old) gives the new one, or an invalid one for a site that is gone.
  template <typename Site>
  void renumber(Site&& site) {
    for (auto& [serial, stacks] : by_process_)
      for (auto& [id, defined] : stacks)
        if (defined.stack.site.valid()) defined.stack.site = site(defined.stack.site);
  }
  template <typename Visit>
  void for_each_site(Visit&& visit) const {
    for (const auto& [serial, stacks] : by_process_)
      for (const auto& [id, defined] : stacks)
        if (defined.stack.site.valid()) visit(defined.stack.site);
  }

 private:
  struct Defined {
    KnownStack stack;
    uint64_t time_ns;  // when it came last
  };
  struct Ended {
    uint64_t time_ns;
    uint32_t serial;
  };

  Diagnostics& diagnostics_;
  size_t most_, size_ = 0;
  std::unordered_map<uint32_t, NumberMap<uint64_t, Defined>> by_process_;
  std::deque<Ended> ended_;
};

}  // namespace cprof::pipeline
