// The one list of everything that was lost, cut, guessed or refused during a run or an import. Each name is counted;
// the summary, the recording, SQL's stats table and the page all show this list. One thread; merge() joins others.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace cprof {

enum class Severity : uint8_t { kInfo, kNotice, kError, kDataLoss };

struct Diagnostic {
  Severity severity = Severity::kInfo;
  uint64_t count = 0;
  std::string description;  // a plain sentence with the mend, e.g. "samples lost in the kernel's ring; lower -F"
  std::string example;      // the first concrete case seen: a path, an address
};

class Diagnostics {
 public:
  // name: stable, snake_case, as it appears in SQL. The first call's description and example are kept.
  void add(std::string_view name, Severity severity, std::string_view description, uint64_t count = 1,
           std::string_view example = {});
  uint64_t count(std::string_view name) const;
  void merge(const Diagnostics& other);
  const std::map<std::string, Diagnostic, std::less<>>& entries() const { return entries_; }

 private:
  std::map<std::string, Diagnostic, std::less<>> entries_;
};

}  // namespace cprof
