// The build-ids of mapped files, as perf tells them: a table at the file's end, or records of their own in a pipe. Private to
// perfdata.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cprof::format::perfdata {

class BuildIds {
 public:
  // Any number of entries, each a record header, a pid, the id and the file's name. in_order: they stand in front of the
  // mappings that they are meant for, so the latest of a name counts.
  void add_table(std::span<const std::byte> entries, bool swap, bool in_order = false);
  // Empty: not told, or told twice and differently.
  std::span<const std::byte> find(std::string_view path) const;

 private:
  void add(std::string path, std::vector<std::byte> id, bool in_order);

  std::map<std::string, std::vector<std::byte>, std::less<>> by_path_;
};

}  // namespace cprof::format::perfdata
