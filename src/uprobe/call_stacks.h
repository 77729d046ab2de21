// Where told calls came from: the stacks that were walked as they ended, found by thread and time, and put together by their
// names. Used by CallSlices and the verb when a run has ended, on one thread. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "profile/profile.h"

namespace cprof::uprobe {

// What calls of one function had in common.
struct CallStack {
  std::vector<std::string> frames;  // the caller first; empty: none could be walked
  uint64_t calls = 0, total_ns = 0;
  profile::StackEnd end = profile::StackEnd::kComplete;
};

class CallStacks {
 public:
  // A sample a call, at the call's end, with the function itself at the leaf.
  explicit CallStacks(profile::Profile walked) : walked_(std::move(walked)) {}

  struct Found {
    profile::CallSiteId callers{};  // of the profile; invalid: nothing above the function itself is known
    profile::StackEnd end = profile::StackEnd::kComplete;
  };
  std::optional<Found> find(int32_t tid, uint64_t end_ns) const;

  // The caller first; inlined functions are frames of their own.
  std::vector<std::string> frames(profile::CallSiteId callers) const;
  const profile::Profile& profile() const { return walked_; }

 private:
  profile::Profile walked_;
};

// Calls by function and stack.
class CallStackSums {
 public:
  void add(uint32_t function, const CallStacks::Found& stack, uint64_t latency_ns);
  // By function, the most frequent first; stacks of equal names are one.
  std::map<uint32_t, std::vector<CallStack>> by_name(const CallStacks& stacks) const;

 private:
  struct Sum {
    uint64_t calls = 0, total_ns = 0;
  };
  std::map<std::tuple<uint32_t, profile::CallSiteId, profile::StackEnd>, Sum> sums_;
};

}  // namespace cprof::uprobe
