// Names for addresses. One ModuleSymbols per ELF file: DWARF lines and inlined frames where there is debug info, else
// symbol tables. Demangling with a cache. No output, no process-wide state; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "object/elf_file.h"

namespace cprof::symbolize {

enum class DemangleStyle : uint8_t { kFull, kShort, kNone };

// Why a frame has no name (or only a symbol-table one).
enum class Miss : uint8_t { kNone, kNoFile, kNoSymbols, kNotInSymbol, kBadDebugInfo, kNoMapping };

struct SourceLine {
  std::string_view name;         // demangled per style
  std::string_view system_name;  // as in the symbol table or DW_AT_linkage_name
  std::string_view file;         // "" unknown
  uint32_t line = 0, column = 0;
  uint32_t start_line = 0;       // DW_AT_decl_line
};

struct Symbolized {
  std::vector<SourceLine> lines;   // innermost inlined first, the real function last; empty: no name
  uint64_t function_start = 0;     // svma of the symbol or DIE; 0 unknown
  Miss miss = Miss::kNone;
};

// Demangles Itanium C++, Rust legacy and v0; bounded in time, memory and length (the raw name comes back beyond).
class Demangler {
 public:
  explicit Demangler(DemangleStyle style);
  ~Demangler();
  std::string_view demangle(std::string_view name);  // valid while the Demangler lives

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class ModuleSymbols {
 public:
  // file: what is mapped; debug: its separate debug file, or null. Both are kept. Indexes are built lazily.
  ModuleSymbols(std::shared_ptr<object::ElfFile> file, std::shared_ptr<object::ElfFile> debug, Demangler& demangler,
                bool inline_frames = true);
  ~ModuleSymbols();

  // svma of the exact instruction to look up (callers pass return address - 1). Views live as long as this object.
  const Symbolized& find(uint64_t svma, Diagnostics& diagnostics);

  bool has_line_info();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// /tmp/perf-PID.map: later entries win over earlier ones that they overlap.
class PerfMap {
 public:
  static PerfMap parse(std::string_view text);
  struct Entry {
    uint64_t start = 0, size = 0;
    std::string_view name;
  };
  std::optional<Entry> find(uint64_t address) const;
  size_t size() const;

  PerfMap(PerfMap&&) noexcept;
  PerfMap& operator=(PerfMap&&) noexcept;
  ~PerfMap();

 private:
  PerfMap();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cprof::symbolize
