// Stacks out of a call graph. A graph tells what each function cost and what each call cost with all that it led to, but
// not which call of a function was led to by which of its callers. So a function's cost is shared out among its callers as
// their calls of it cost. Used by the callgrind reader; one thread.
#pragma once

#include <span>

#include "format/callgrind/call_graph.h"
#include "profile/builder.h"

namespace cprof::format {

// Adds the graph's costs as aggregates, metrics[i] for event i. What each function and line cost itself is exact; how it
// is shared out among stacks is the assumption above. Only with believe_calls a function costs more where the calls of it
// say so: in a file that contradicts itself and tells no total to decide by. A function stands once in a stack: recursion is folded. Where the
// graph has more stacks than memory is meant for, the costs of the small ones go to the great ones, which is counted.
struct StackOptions {
  profile::ThreadId thread;  // of all costs
  bool believe_calls = false;
};
void add_stacks(const CallGraph& graph, std::span<const profile::MetricId> metrics, const StackOptions& options,
                profile::ProfileBuilder& builder);

}  // namespace cprof::format
