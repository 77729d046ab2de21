// The function table that a Go program carries for its own stack traces (.gopclntab). It stays when the program is
// stripped
// (-ldflags "-s -w", strip), and is then all there is to name its functions and to walk over them. Called by ElfFile
// for symbols and by unwind/cfi for the depths of frames. What a hostile table claims is bounded by the section's own
// size.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "object/elf_file.h"

namespace cprof::object {

struct GoFunction {
  uint64_t start = 0, end = 0;  // svma
  uint32_t name = 0;            // in names
  uint32_t depths = 0;          // in depths; 0: not told
  bool is_root = false;         // nothing calls it: where a goroutine or a thread begins
  bool moves_stack = false;     // it goes to another stack: its depth says nothing about its caller
};

struct GoTable {
  std::vector<GoFunction> functions;  // ascending, inside the executable segments
  std::vector<std::byte> names;       // each ends with a 0
  std::vector<std::byte> depths;
  uint8_t quantum = 1;  // bytes that a step of a pc counts
};

// Nothing: no Go program, or one of a version that is not known. An Error: it has the table, and it is broken.
Result<std::optional<GoTable>> read_go_table(ElfFile& file);

// How far the stack pointer lies below where it was when the function was entered, for each stretch of its code. False:
// the table is broken from there on.
bool for_each_go_depth(const GoTable& table, const GoFunction& function,
                       const std::function<void(uint64_t start, uint64_t end, int32_t depth)>& visit);

}  // namespace cprof::object
