// The mappings at the end of an old profile: lines of /proc/PID/maps or of the short form "start-end: path". Used by the
// readers of this folder; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cprof::format {

struct MapEntry {
  uint64_t start = 0, limit = 0, offset = 0;
  std::string path;
};

class MemoryMap {
 public:
  // False: neither a mapping nor a definition "name=value" whose $name later lines use. Code only: others are left out.
  bool add_line(std::string_view line);
  // Joins what was split, and makes find() work. After the last line.
  void finish();

  static constexpr size_t kNone = ~size_t{0};
  size_t find(uint64_t address) const;  // index into entries()
  const std::vector<MapEntry>& entries() const { return entries_; }

 private:
  std::string expand(std::string_view line) const;

  std::vector<MapEntry> entries_;  // by start after finish()
  std::map<std::string, std::string, std::greater<>> values_;
};

}  // namespace cprof::format
