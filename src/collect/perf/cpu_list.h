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
// path as sysfs has it; where that cannot be read, the lines of /proc/stat.
Result<std::vector<int>> read_online_cpus(const std::string& path, const std::string& stat_path);

}  // namespace cprof::collect
