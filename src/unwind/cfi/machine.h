// What the CFI code must know of a CPU: one Machine constant per architecture, in x86_64/ and aarch64/, found through
// one table. Adding a CPU adds a folder and a row of that table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "unwind/cfi/frame_program.h"
#include "unwind/core/unwind_rows.h"

namespace cprof::unwind {

// A stretch of text that the linker or the C library made without CFI, and what holds there.
struct KnownCode {
  uint64_t start = 0, end = 0;
  cp_rule rule{};
};

struct MachineCfi {
  uint16_t elf_machine;              // EM_*
  const cp_machine* core;
  uint64_t callee_saved;             // bit n: a call keeps register n
  uint8_t eh_return_register;        // holds the new sp, then the handler, at the end of __builtin_eh_return; 0xff: none
  // The compact rule for one CFI row; CP_CFA_COMPLEX where rows cannot say it.
  cp_rule (*classify)(const FrameState& state, const Cie& cie);
  bool (*is_padding)(std::byte last_byte_before_function);
  // Rows for linker-made call stubs (.plt, .iplt), whose bytes are given: used where they have no CFI.
  std::vector<KnownCode> (*plt_code)(uint64_t start, std::span<const std::byte> code);
  // Rows for .init or .fini, whose bytes are given; empty when the code is not the usual one.
  std::vector<KnownCode> (*init_code)(uint64_t start, std::span<const std::byte> code);
  // The instructions of a signal trampoline, searched for in code without CFI.
  std::span<const std::span<const std::byte>> sigreturn_code;
};

extern const MachineCfi kX86_64Cfi;
extern const MachineCfi kAarch64Cfi;

const MachineCfi* find_machine_cfi(uint16_t elf_machine);  // null: not supported

}  // namespace cprof::unwind
