// Strongly connected components by Tarjan's algorithm, with a stack of its own instead of the program's: a file may hold a
// chain of a million calls.
#include "format/callgrind/recursion.h"

#include <algorithm>
#include <cstdint>

namespace cprof::format {
namespace {

class Components {
 public:
  explicit Components(const CallGraph& graph) : first_(graph.functions().size() + 1), nodes_(graph.functions().size()) {
    for (const CallGraph::Call& call : graph.calls()) ++first_[call.from.function + 1];
    for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    targets_.resize(graph.calls().size());
    std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
    for (const CallGraph::Call& call : graph.calls()) targets_[next[call.from.function]++] = call.to;
  }

  Recursion find() {
    result_.circle.resize(nodes_.size());
    result_.is_recursive.resize(nodes_.size());
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].order == 0) visit(i);
    return std::move(result_);
  }

 private:
  struct Node {
    uint32_t order = 0, lowest = 0, next_call = 0;
    bool is_open = false;
  };

  void open(uint32_t i) {
    nodes_[i] = {++count_, count_, first_[i], true};
    open_.push_back(i);
    path_.push_back(i);
  }

  void visit(uint32_t root) {
    open(root);
    while (!path_.empty()) {
      const uint32_t i = path_.back();
      Node& node = nodes_[i];
      if (node.next_call == first_[i + 1]) {
        leave(i);
        continue;
      }
      const uint32_t to = targets_[node.next_call++];
      if (to == i) result_.is_recursive[i] = true;
      if (nodes_[to].order == 0)
        open(to);
      else if (nodes_[to].is_open)
        node.lowest = std::min(node.lowest, nodes_[to].order);
    }
  }

  void leave(uint32_t i) {
    path_.pop_back();
    if (!path_.empty()) nodes_[path_.back()].lowest = std::min(nodes_[path_.back()].lowest, nodes_[i].lowest);
    if (nodes_[i].lowest != nodes_[i].order) return;
    const bool is_circle = open_.back() != i;
    for (bool is_done = false; !is_done; open_.pop_back()) {
      const uint32_t member = open_.back();
      nodes_[member].is_open = false;
      result_.circle[member] = result_.circle_count;
      if (is_circle) result_.is_recursive[member] = true;
      is_done = member == i;
    }
    ++result_.circle_count;
  }

  std::vector<uint32_t> first_, targets_;  // the calls of function i are targets_[first_[i], first_[i + 1])
  std::vector<Node> nodes_;
  std::vector<uint32_t> open_, path_;
  Recursion result_;
  uint32_t count_ = 0;
};

}  // namespace

Recursion find_recursion(const CallGraph& graph) { return Components(graph).find(); }

}  // namespace cprof::format
