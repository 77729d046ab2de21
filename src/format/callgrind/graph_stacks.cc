// Roots are functions that cost more than the calls of them do: nobody is told to have called them for the difference.
// From there the calls are followed, the most costly stack first. A branch is a function at the end of a stack; its share
// is how much of all that the function did happened there. When all branches are known, each function's own costs are dealt
// out to its branches by their shares, in whole numbers whose sum is exact. Costs below 0 (memory given back) tell nothing
// of shares: an event that has some goes the way of one that has none, else of its amounts.
#include "format/callgrind/graph_stacks.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "format/callgrind/recursion.h"
#include "format/frame_text.h"
#include "format/values.h"

namespace cprof::format {
namespace {

using profile::CallSiteId;
using FunctionRow = CallGraph::FunctionRow;

constexpr size_t kBudgetBytes = size_t{32} << 20;
constexpr uint32_t kMaxDepth = 2000;
constexpr double kLeastCost = 0.5;  // what rounds to nothing
constexpr double kTolerance = 1e-9;

class StackMaker {
 public:
  StackMaker(const CallGraph& graph, std::span<const profile::MetricId> metrics, const StackOptions& options,
             profile::ProfileBuilder& builder)
      : graph_(graph), metrics_(metrics), options_(options), builder_(builder), events_(metrics.size()) {
    const size_t bytes_each = sizeof(Branch) + sizeof(double) * events_ + sizeof(profile::Aggregate) * events_ + 64;
    max_branches_ = kBudgetBytes / bytes_each;
  }

  void run() {
    choose_guides();
    sum_up();
    add_roots();
    expand();
    reach_the_rest();
    deal_out();
  }

 private:
  struct Branch {
    CallSiteId parent;  // of the function's frame
    FunctionRow function;
    uint32_t caller;  // a branch; kNoCaller
    uint32_t depth;
    static constexpr uint32_t kNoCaller = 0xffffffff;
  };
  struct Waiting {
    double weight;
    uint32_t branch;
    bool operator<(const Waiting& other) const {
      return weight != other.weight ? weight < other.weight : branch > other.branch;
    }
  };

  void choose_guides() {
    has_negative_.assign(events_, false);
    guides_.resize(events_);
    const auto note = [&](std::span<const int64_t> costs) {
      for (size_t e = 0; e < events_; ++e)
        if (costs[e] < 0) has_negative_[e] = true;
    };
    for (size_t i = 0; i < graph_.places().size(); ++i) note(graph_.self(i));
    for (size_t i = 0; i < graph_.calls().size(); ++i) note(graph_.inclusive(i));
    const auto clean = static_cast<size_t>(std::ranges::find(has_negative_, false) - has_negative_.begin());
    for (size_t e = 0; e < events_; ++e) guides_[e] = has_negative_[e] && clean < events_ ? clean : e;
  }

  // What shares of event e go by.
  double cost_of(std::span<const int64_t> costs, size_t e) const { return std::abs(static_cast<double>(costs[guides_[e]])); }

  double& at(std::vector<double>& costs, size_t row, size_t event) const { return costs[row * events_ + event]; }

  // What each function cost with all it called; what each circle of recursive functions (most are one function that is
  // none) cost with all that it called outside, less what the calls of it from outside cost.
  void sum_up() {
    recursion_ = find_recursion(graph_);
    inclusive_.resize(graph_.functions().size() * events_);
    uncalled_.resize(recursion_.circle_count * events_);
    circle_inclusive_.resize(recursion_.circle_count * events_);
    total_.resize(events_);
    calls_of_.resize(graph_.functions().size());
    is_reached_.resize(graph_.functions().size());
    on_path_.resize(graph_.functions().size(), Branch::kNoCaller);
    for (size_t i = 0; i < graph_.places().size(); ++i) add_cost_of(graph_.places()[i].from.function, graph_.self(i), true);
    for (size_t i = 0; i < graph_.calls().size(); ++i) {
      const CallGraph::Call& call = graph_.calls()[i];
      calls_of_[call.from.function].push_back(static_cast<uint32_t>(i));
      add_cost_of(call.from.function, graph_.inclusive(i), false);
      if (recursion_.circle[call.from.function] == recursion_.circle[call.to]) continue;
      add_to_circle(call.from.function, graph_.inclusive(i), true);
      add_to_circle(call.to, graph_.inclusive(i), false);
    }
  }

  void add_cost_of(FunctionRow f, std::span<const int64_t> costs, bool is_self) {
    for (size_t e = 0; e < events_; ++e) {
      at(inclusive_, f, e) += cost_of(costs, e);
      if (is_self) total_[e] += cost_of(costs, e);
    }
    if (is_self) add_to_circle(f, costs, true);
  }

  void add_to_circle(FunctionRow f, std::span<const int64_t> costs, bool is_own) {
    for (size_t e = 0; e < events_; ++e) {
      const double cost = cost_of(costs, e);
      at(uncalled_, recursion_.circle[f], e) += is_own ? cost : -cost;
      if (is_own) at(circle_inclusive_, recursion_.circle[f], e) += cost;
    }
  }

  // Of a circle, its most costly function.
  void add_roots() {
    std::vector<FunctionRow> greatest(recursion_.circle_count, CallGraph::kNone);
    for (FunctionRow f = 0; f < graph_.functions().size(); ++f) {
      FunctionRow& best = greatest[recursion_.circle[f]];
      if (best == CallGraph::kNone || at(inclusive_, f, 0) > at(inclusive_, best, 0)) best = f;
    }
    for (FunctionRow f = 0; f < graph_.functions().size(); ++f)
      if (greatest[recursion_.circle[f]] == f) add_root(f);
  }

  void add_root(FunctionRow f) {
    std::vector<double> shares(events_);
    bool is_root = false;
    for (size_t e = 0; e < events_; ++e) {
      const double all = at(circle_inclusive_, recursion_.circle[f], e), rest = at(uncalled_, recursion_.circle[f], e);
      if (rest < kLeastCost || rest <= all * kTolerance) continue;
      shares[e] = rest / all;
      is_root = true;
    }
    if (is_root) add_branch({{}, f, Branch::kNoCaller, 0}, shares);
  }

  void add_branch(const Branch& branch, std::span<const double> shares) {
    if (branches_.size() >= max_branches_) {
      is_cut_ = true;
      return;
    }
    double weight = 0;
    for (size_t e = 0; e < events_; ++e)
      if (total_[e] > 0) weight = std::max(weight, shares[e] * at(inclusive_, branch.function, e) / total_[e]);
    waiting_.push({weight, static_cast<uint32_t>(branches_.size())});
    branches_.push_back(branch);
    shares_.insert(shares_.end(), shares.begin(), shares.end());
    is_reached_[branch.function] = true;
  }

  void expand() {
    while (!waiting_.empty()) {
      const uint32_t branch = waiting_.top().branch;
      waiting_.pop();
      for (uint32_t b = branch; b != Branch::kNoCaller; b = branches_[b].caller) on_path_[branches_[b].function] = branch;
      for (uint32_t call : calls_of_[branches_[branch].function]) follow(branch, call);
    }
  }

  void follow(uint32_t branch, uint32_t row) {
    const CallGraph::Call& call = graph_.calls()[row];
    const Branch from = branches_[branch];
    if (on_path_[call.to] == branch) return;
    if (from.depth >= kMaxDepth) {
      is_cut_ = true;
      return;
    }
    scratch_.assign(events_, 0);
    bool is_worth = false;
    const uint32_t circle = recursion_.circle[call.to];
    const bool enters = circle != recursion_.circle[call.from.function];  // what it does inside itself counts once
    for (size_t e = 0; e < events_; ++e) {
      const double cost = shares_[branch * events_ + e] * cost_of(graph_.inclusive(row), e);
      const double all = enters ? at(circle_inclusive_, circle, e) : at(inclusive_, call.to, e);
      is_worth |= cost >= kLeastCost;
      if (all > 0) scratch_[e] = cost / all;
    }
    if (is_worth) add_branch({builder_.site(from.parent, location(call.from)), call.to, branch, from.depth + 1}, scratch_);
  }

  // Circles that nobody outside calls, and what the budget left out: the most costly function begins a stack.
  void reach_the_rest() {
    std::vector<FunctionRow> rest;
    for (const CallGraph::Call& place : graph_.places())
      if (!is_reached_[place.from.function]) rest.push_back(place.from.function);
    std::ranges::stable_sort(rest, [&](FunctionRow a, FunctionRow b) { return at(inclusive_, a, 0) > at(inclusive_, b, 0); });
    const std::vector<double> whole(events_, 1.0);
    for (FunctionRow f : rest) {
      if (is_reached_[f]) continue;
      add_branch({{}, f, Branch::kNoCaller, 0}, whole);
      expand();
    }
  }

  profile::LocationId location(const CallGraph::Place& place) {
    const CallGraph::Function& f = graph_.functions()[place.function];
    const std::string_view object = builder_.profile().text(f.object);
    const auto mapping = object.empty() ? profile::MappingId() : builder_.mapping({.path = f.object});
    const profile::Line line{builder_.function({.name = f.name == profile::kNoText ? builder_.intern("???") : f.name,
                                                .system_name = f.name, .file = place.file}), place.line};
    return builder_.named_location(mapping, kind_of_module(object), {&line, 1});
  }

  // Branches and places of each function, side by side.
  void deal_out() {
    const size_t functions = graph_.functions().size();
    std::vector<std::vector<uint32_t>> branches(functions), places(functions);
    for (size_t i = 0; i < branches_.size(); ++i) branches[branches_[i].function].push_back(static_cast<uint32_t>(i));
    for (size_t i = 0; i < graph_.places().size(); ++i)
      places[graph_.places()[i].from.function].push_back(static_cast<uint32_t>(i));
    for (FunctionRow f = 0; f < functions; ++f)
      for (size_t e = 0; e < events_; ++e) {
        deal_out_function(f, branches[f], places[f], e, 1);
        if (has_negative_[e]) deal_out_function(f, branches[f], places[f], e, -1);
      }
    if (is_cut_)
      builder_.profile().diagnostics.add("callgrind_stacks_cut", Severity::kNotice,
                                         "the call graph has more stacks than are made; the costs of small ones were "
                                         "added to great ones");
  }

  // Places' costs fill the branches one after the other: as few pairs as can be, and both sums are exact. Those above 0 and
  // those below are dealt out by themselves.
  void deal_out_function(FunctionRow f, std::span<const uint32_t> branches, std::span<const uint32_t> places, size_t e,
                         int64_t sign) {
    const double factor = excess(f, branches, e);
    std::vector<int64_t> costs;
    int64_t total = 0;
    for (uint32_t place : places) {
      const int64_t self = std::max<int64_t>(graph_.self(place)[e] * sign, 0);
      costs.push_back(factor == 1 ? self : std::llround(std::min(static_cast<double>(self) * factor, 0x1p62)));
      total = add_clamped(total, costs.back());
    }
    if (total == 0) return;
    if (branches.empty()) {  // beyond the budget: a stack of its own
      for (size_t i = 0; i < places.size(); ++i) add_cost({}, places[i], e, costs[i] * sign);
      return;
    }
    const std::vector<int64_t> parts = parts_of(total, branches, e);
    size_t place = 0;
    for (size_t i = 0; i < branches.size(); ++i) {
      for (int64_t left = parts[i]; left > 0 && place < places.size();) {
        const int64_t now = std::min(left, costs[place]);
        add_cost(branches_[branches[i]].parent, places[place], e, now * sign);
        left -= now;
        if ((costs[place] -= now) == 0) ++place;
      }
    }
  }

  void add_cost(CallSiteId parent, uint32_t place, size_t e, int64_t cost) {
    if (cost == 0) return;
    builder_.add_aggregate({.site = builder_.site(parent, location(graph_.places()[place].from)),
                            .metric = metrics_[e], .value = cost, .thread = options_.thread});
  }

  // Calls of a function may cost more than all it did: where recursion explains it, and where a program ends inside it.
  double excess(FunctionRow f, std::span<const uint32_t> branches, size_t e) const {
    double sum = 0;
    for (uint32_t b : branches) sum += shares_[b * events_ + e];
    return !options_.believe_calls || has_negative_[e] || recursion_.is_recursive[f] || sum <= 1 + 1e-6 ? 1 : sum;
  }

  // total in whole parts as the shares are; the parts' sum is total.
  std::vector<int64_t> parts_of(int64_t total, std::span<const uint32_t> branches, size_t e) const {
    long double sum = 0, before = 0;
    for (uint32_t b : branches) sum += shares_[b * events_ + e];
    std::vector<int64_t> parts;
    int64_t given = 0;
    for (size_t i = 0; i < branches.size(); ++i) {
      before += shares_[branches[i] * events_ + e];
      const bool is_last = i + 1 == branches.size();
      const long double until = sum > 0 ? static_cast<long double>(total) * (before / sum) : 0;
      const int64_t end = is_last ? total : std::clamp<int64_t>(std::llroundl(until), given, total);
      parts.push_back(end - given);
      given = end;
    }
    return parts;
  }

  const CallGraph& graph_;
  std::span<const profile::MetricId> metrics_;
  StackOptions options_;
  profile::ProfileBuilder& builder_;
  size_t events_, max_branches_ = 0;
  std::vector<bool> has_negative_;                       // by event
  std::vector<size_t> guides_;                           // by event: the event whose costs tell its shares
  Recursion recursion_;
  std::vector<double> inclusive_, total_;                // by function and event; by event
  std::vector<double> circle_inclusive_, uncalled_;      // by circle and event
  std::vector<std::vector<uint32_t>> calls_of_;          // rows of calls, by function
  std::vector<bool> is_reached_;
  std::vector<uint32_t> on_path_;                        // by function: the branch whose path it was last seen on
  std::vector<Branch> branches_;
  std::vector<double> shares_, scratch_;                 // events_ a branch
  std::priority_queue<Waiting> waiting_;
  bool is_cut_ = false;
};

}  // namespace

void add_stacks(const CallGraph& graph, std::span<const profile::MetricId> metrics, const StackOptions& options,
                profile::ProfileBuilder& builder) {
  StackMaker(graph, metrics, options, builder).run();
}

}  // namespace cprof::format
