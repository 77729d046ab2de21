#include "format/callgrind/call_graph.h"

#include "format/values.h"

namespace cprof::format {

using profile::hash_join;

CallGraph::FunctionRow CallGraph::function(const Function& function) {
  const uint64_t hash = hash_join(hash_join(profile::hash_seed() ^ function.name.value, function.file.value), function.object.value);
  auto equal = [&](uint32_t row) {
    const Function& f = functions_[row];
    return f.name == function.name && f.file == function.file && f.object == function.object;
  };
  return function_index_.find_or_add(hash, equal, [&] {
    functions_.push_back(function);
    return static_cast<uint32_t>(functions_.size() - 1);
  });
}

void CallGraph::add(std::vector<Call>& rows, profile::RowIndex& index, std::vector<int64_t>& costs, const Place& from,
                    FunctionRow to, std::span<const int64_t> more) {
  const uint64_t hash =
      hash_join(hash_join(profile::hash_seed() ^ from.function, from.file.value), uint64_t{from.line} << 32 | to);
  auto equal = [&](uint32_t row) { return rows[row].from == from && rows[row].to == to; };
  const uint32_t row = index.find_or_add(hash, equal, [&] {
    rows.push_back({from, to});
    costs.resize(costs.size() + events_);
    return static_cast<uint32_t>(rows.size() - 1);
  });
  for (size_t i = 0; i < more.size(); ++i) {
    int64_t& sum = costs[row * events_ + i];
    sum = add_clamped(sum, more[i]);
  }
}

}  // namespace cprof::format
