// /proc/kallsyms: types t T w W, modules as [module]. Binary search with a cache. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cprof::object {

struct KernelSymbol {
  std::string_view name;    // valid while the KernelSymbols lives
  std::string_view module;  // "" for the core kernel, else "nfs"
  uint64_t start = 0;
};

// Code that the kernel generated, BPF programs above all: behind the kernel's own text nothing else is without a module.
inline bool is_generated(const KernelSymbol& symbol) { return symbol.name == "_etext"; }
inline constexpr std::string_view kGeneratedCode = "[bpf]";

// One of the module "bpf": these come and go, so it is known of the moment only when the list was read.
struct GeneratedSymbol {
  uint64_t start = 0, end = 0;  // end: of what may be its code, as only starts are told
  std::string name;
};

class KernelSymbols {
 public:
  // From a file in kallsyms' form. All addresses zero: hidden() is true and find() never answers.
  static Result<KernelSymbols> load(const std::string& path = "/proc/kallsyms");
  static KernelSymbols parse(std::string_view text);

  bool hidden() const { return hidden_; }  // kptr_restrict or rights hide the addresses
  size_t size() const { return entries_.size(); }
  size_t malformed_lines() const { return malformed_; }

  // The nearest symbol at or below, unless the address is more than 64 KiB into a symbol that nothing of the same module
  // (or of the core kernel) follows: what lies between modules belongs to none of them.
  std::optional<KernelSymbol> find(uint64_t address) const;
  // By start; find() never answers with one of them.
  const std::vector<GeneratedSymbol>& generated() const { return generated_; }

 private:
  struct Entry {
    uint64_t start;
    uint32_t name_offset;  // into names_
    uint16_t name_length;
    uint16_t module;       // into modules_
  };
  struct CacheSlot {
    uint64_t address = 0;
    uint32_t entry = kNoEntry;
  };
  static constexpr uint32_t kNoEntry = 0xffffffff;
  static constexpr size_t kCacheSlots = 256;
  struct Parser;

  std::string_view name_of(const Entry& entry) const { return {names_.data() + entry.name_offset, entry.name_length}; }
  void sort_and_join_aliases();
  void sort_generated();
  bool is_better_alias(const Entry& candidate, const Entry& than) const;
  uint32_t search(uint64_t address) const;

  std::vector<char> names_;
  std::vector<std::string> modules_{""};
  std::vector<Entry> entries_;
  std::vector<GeneratedSymbol> generated_;
  mutable std::array<CacheSlot, kCacheSlots> cache_;
  size_t malformed_ = 0;
  bool hidden_ = false;
};

}  // namespace cprof::object
