// Who called whom at what cost: what a callgrind file holds. Filled by the reader, made into stacks by graph_stacks.h.
// Costs are counted for each event of the file. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/profile.h"
#include "profile/row_index.h"

namespace cprof::format {

class CallGraph {
 public:
  using FunctionRow = uint32_t;
  static constexpr FunctionRow kNone = 0xffffffff;

  struct Function {
    StringId name = profile::kNoText, file = profile::kNoText, object = profile::kNoText;
  };
  // A line of a function, or of a file whose code was inlined there.
  struct Place {
    FunctionRow function = kNone;
    StringId file = profile::kNoText;
    uint32_t line = 0;
    bool operator==(const Place&) const = default;
  };
  struct Call {
    Place from;
    FunctionRow to = kNone;
  };

  void set_event_count(size_t count) { events_ = count; }
  size_t event_count() const { return events_; }

  FunctionRow function(const Function& function);
  // Costs in the order of the events, missing ones are 0. Sums stay at the limit of int64.
  void add_self(const Place& place, std::span<const int64_t> costs) { add(places_, place_index_, self_, place, kNone, costs); }
  void add_call(const Place& from, FunctionRow to, std::span<const int64_t> costs) {
    add(calls_, call_index_, inclusive_, from, to, costs);
  }

  const std::vector<Function>& functions() const { return functions_; }
  const std::vector<Call>& places() const { return places_; }  // with no callee
  const std::vector<Call>& calls() const { return calls_; }
  std::span<const int64_t> self(size_t place) const { return std::span(self_).subspan(place * events_, events_); }
  std::span<const int64_t> inclusive(size_t call) const { return std::span(inclusive_).subspan(call * events_, events_); }

 private:
  void add(std::vector<Call>& rows, profile::RowIndex& index, std::vector<int64_t>& costs, const Place& from,
           FunctionRow to, std::span<const int64_t> more);

  size_t events_ = 0;
  std::vector<Function> functions_;
  std::vector<Call> places_, calls_;
  std::vector<int64_t> self_, inclusive_;  // events_ a row
  profile::RowIndex function_index_, place_index_, call_index_;
};

}  // namespace cprof::format
