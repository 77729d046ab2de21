#include "base/own_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace cprof {
namespace {

std::string absolute_variable(const char* name) {
  const char* value = getenv(name);
  return value && *value == '/' ? value : "";
}

// The nearest that is there: itself, or the one that it would be made in.
std::string existing_part(std::string path) {
  while (path.size() > 1 && access(path.c_str(), F_OK) != 0) path.resize(std::max<size_t>(path.rfind('/'), 1));
  return path;
}

}  // namespace

bool is_own_folder(const std::string& path) {
  struct stat st;
  return path.starts_with('/') && ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

void make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    mkdir(path.substr(0, slash).c_str(), 0700);
  mkdir(path.c_str(), 0700);
}

std::string state_folder() {
  std::string folder = absolute_variable("XDG_STATE_HOME");
  if (folder.empty()) {
    folder = absolute_variable("HOME");
    if (folder.empty()) return "";
    folder += "/.local/state";
  }
  folder += "/cprof";
  if (!is_own_folder(existing_part(folder))) return "";
  make_folders(folder);
  return is_own_folder(folder) && access(folder.c_str(), W_OK) == 0 ? folder : "";
}

}  // namespace cprof
