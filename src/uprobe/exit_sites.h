// Where a function can be left, by its instructions: returns, and jumps to what is not the function itself. Each becomes a
// probe, so what is not surely an instruction is never one: a function whose bytes do not all read as instructions, or
// that jumps between two of them, has no exits, with the reason. x86-64. Called for each function that is traced; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/bpf/uprobe_abi.h"
#include "object/elf_file.h"

namespace cprof::uprobe {

struct CodePart {  // addresses in the file's own terms
  uint64_t start = 0, end = 0;
  bool holds(uint64_t address) const { return address >= start && address < end; }
};

struct FunctionCode {
  CodePart hot;                    // begins with the entry
  std::vector<CodePart> cold;      // what the compiler put elsewhere
  std::vector<uint64_t> entries;   // of the function and its clones: a jump there goes on with the same call
};

// The part out of line that holds an address, if one does.
using FindColdPart = std::function<std::optional<CodePart>(uint64_t address)>;

class ExitFinder {
 public:
  static Result<ExitFinder> open(uint16_t machine);
  ExitFinder(ExitFinder&& other) noexcept;
  ExitFinder& operator=(ExitFinder&&) = delete;
  ~ExitFinder();

  // Sites of kind exit and continue, without the function's number. Parts that jumps show are added to the code.
  Result<std::vector<uprobe_site>> find(object::ElfFile& file, FunctionCode& code, const FindColdPart& find_cold);

 private:
  explicit ExitFinder(size_t handle) : handle_(handle) {}
  size_t handle_;
};

// The best place for the entry's probe: behind a mark for indirect branches, when a push follows it. Whether the kernel has
// to step through what the probe replaces.
struct EntryPlace {
  uint64_t address = 0;
  bool is_stepped = true;
};
EntryPlace entry_place(std::span<const std::byte> first_bytes, uint64_t address);

}  // namespace cprof::uprobe
