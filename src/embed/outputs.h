// Where a session's files go, and their writing: the formats that the library can write, by extension. One process never
// overwrites another's: but for the first process of a run, and names that say %p, the process id is appended.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"

namespace cprof::embed {

// Whether the format of this name can be written.
Result<void> check_output(std::string_view pattern);

std::string working_folder();   // "": it is gone
// Relative names lie in the folder from now on, wherever the program goes.
void settle_outputs(std::vector<std::string>& patterns, std::string_view folder);

struct OutputName {
  std::string program;
  int32_t pid = 0;
  uint64_t number = 0;          // how many sessions of this process wrote before: %n, or ".N" from the second on
  bool is_first_process = true;
};
std::string expand_name(std::string_view pattern, const OutputName& name);

// pattern: its extension chooses the format.
Result<void> write_profile(const profile::Profile& profile, std::string_view pattern, const std::string& path);
Result<void> write_profile_onto(int fd, const profile::Profile& profile, std::string_view pattern);

}  // namespace cprof::embed
