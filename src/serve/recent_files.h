// The files that `cprof view` showed before, the newest first: one path a line, in a file that only its user can read. It holds
// no more than the paths that were named, and is gone when the user says so. Used by the page's server, one call at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cprof::serve {

class RecentFiles {
 public:
  struct Entry {
    std::string path;
    uint64_t bytes = 0;
    int64_t changed_s = 0;  // since the epoch
  };

  static std::string default_list();  // "": this user has no place for it

  explicit RecentFiles(std::string list) : list_(std::move(list)) {}  // "": nothing is kept

  std::vector<Entry> entries() const;   // those that are still there
  void add(std::string_view path);      // in front; only an ordinary file can be opened again
  Result<void> forget();                // all of them

 private:
  std::vector<std::string> paths() const;

  std::string list_;
};

}  // namespace cprof::serve
