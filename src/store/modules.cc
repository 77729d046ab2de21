#include "store/modules.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/module_scripts.h"

namespace cprof::store {

std::span<const SqlModule> all_modules() {
  static const std::vector<SqlModule> kModules = {
      {kPrelude, {}, kPreludeScript},
      {"callstacks.stack_profile", {}, kStackProfileScript},
      {"graphs.hierarchy", {}, kHierarchyScript},
      {"linux.perf.samples", {"callstacks.stack_profile"}, kPerfSamplesScript},
      {"sched.states", {}, kSchedStatesScript},
      {"sched.time_in_state", {}, kTimeInStateScript},
      {"sched.with_context", {}, kSchedContextScript},
      {"slices.hierarchy", {}, kSliceHierarchyScript},
      {"slices.self_dur", {}, kSelfDurationScript},
      {"slices.with_context", {}, kSliceContextScript},
      {"stacks.cpu_profiling", {"callstacks.stack_profile", "linux.perf.samples"}, kCpuProfilingScript},
      {"time.conversion", {}, kTimeConversionScript},
  };
  return kModules;
}

Result<std::vector<const SqlModule*>> find_modules(std::string_view name) {
  std::vector<const SqlModule*> found;
  const bool is_pattern = name == "*" || name.ends_with(".*");
  const std::string_view start = is_pattern ? name.substr(0, name.size() - 1) : name;
  for (const SqlModule& module : all_modules())
    if (is_pattern ? module.name.starts_with(start) : module.name == name) found.push_back(&module);
  if (!found.empty()) return found;
  if (name.starts_with("prelude.")) return find_modules(kPrelude);
  std::string names;
  for (const SqlModule& module : all_modules())
    if (module.name != kPrelude) names += fmt::format("{}{}", names.empty() ? "" : ", ", module.name);
  return fail(fmt::format("not supported: module {}; there are {}", name, names));
}

}  // namespace cprof::store
