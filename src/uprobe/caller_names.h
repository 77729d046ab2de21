// Where calls came from, by name: the code that a call returns to. Used by the verb when a run has ended; one thread, and the
// process may have no other then.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "collect/bpf/uprobe_abi.h"
#include "symbolize/symbolizer.h"
#include "uprobe/target_files.h"

namespace cprof::uprobe {

struct Caller {
  std::string name;    // "" when there is none: then the address in the file, or in the process
  std::string module;
  uint64_t address = 0;
  uint64_t calls = 0;
};

using NotedCallers = std::vector<std::pair<uprobe_caller_key, uprobe_caller>>;

// By function, the most frequent first. Files that are not known yet are looked for in processes that still run.
std::map<uint32_t, std::vector<Caller>> name_callers(const NotedCallers& noted, TargetFiles& files, symbolize::DemangleStyle style,
                                                     Diagnostics& diagnostics);

}  // namespace cprof::uprobe
