// /proc/kallsyms: types t T w W, modules as [module]. Binary search with a cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/string_table.h"

namespace cprof::object {

struct KernelSymbol {
  std::string_view name;
  std::string_view module;  // "" for the core kernel, else "nfs"
  uint64_t start = 0;
};

class KernelSymbols {
 public:
  // From a file in kallsyms' form. All addresses zero: hidden() is true and find() never answers.
  static Result<KernelSymbols> load(const std::string& path = "/proc/kallsyms");
  static KernelSymbols parse(std::string_view text);

  bool hidden() const { return hidden_; }  // kptr_restrict or rights hide the addresses
  size_t size() const { return entries_.size(); }
  std::optional<KernelSymbol> find(uint64_t address) const;

 private:
  struct Entry {
    uint64_t start;
    StringId name, module;
  };
  StringTable strings_;
  std::vector<Entry> entries_;
  bool hidden_ = false;
};

}  // namespace cprof::object
