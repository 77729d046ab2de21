#include "unwind/cfi/go_code.h"

#include <elf.h>

#include "object/go_table.h"

namespace cprof::unwind {
namespace {

constexpr int32_t kReturnAddressBytes = 8, kSavedFramePointer = -16;  // from the CFA

KnownCode root(const object::GoFunction& function) {
  KnownCode code{function.start, function.end, {}};
  code.rule.cfa_kind = CP_CFA_STOP;
  return code;
}

// A function with a frame saves the caller's frame pointer first of all.
KnownCode frame(uint64_t start, uint64_t end, int32_t depth) {
  KnownCode code{start, end, {}};
  code.rule.cfa_kind = CP_CFA_SP;
  code.rule.offset = depth + kReturnAddressBytes;
  if (depth < kReturnAddressBytes) return code;
  code.rule.fp_kind = CP_FP_AT_CFA;
  code.rule.fp_offset = kSavedFramePointer;
  return code;
}

}  // namespace

std::vector<KnownCode> go_code(object::ElfFile& file) {
  std::vector<KnownCode> pieces;
  if (file.machine() != EM_X86_64) return pieces;
  const auto table = object::read_go_table(file);
  if (!table || !*table) return pieces;
  constexpr int32_t kDeepest = INT32_MAX - kReturnAddressBytes;
  for (const object::GoFunction& function : (*table)->functions) {
    if (function.is_root)
      pieces.push_back(root(function));
    else if (function.depths && !function.moves_stack)
      object::for_each_go_depth(**table, function, [&](uint64_t start, uint64_t end, int32_t depth) {
        if (depth <= kDeepest) pieces.push_back(frame(start, end, depth));
      });
  }
  return pieces;
}

}  // namespace cprof::unwind
