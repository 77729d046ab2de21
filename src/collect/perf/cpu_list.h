// CPU lists as the kernel and -C write them: "0-3,8". Which CPUs are online decides how many rings there are; the
// possible ones never matter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cprof::collect {

// Sorted, each once. CPU numbers are below 65536.
Result<std::vector<int>> parse_cpu_list(std::string_view text);
Result<std::vector<int>> read_cpu_list(const std::string& path);

}  // namespace cprof::collect
