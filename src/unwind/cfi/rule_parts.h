// The parts of a compact rule that every machine classifies alike. Callers: x86_64/machine.cc, aarch64/machine.cc.
#pragma once

#include <cstdint>
#include <limits>

#include "unwind/cfi/machine.h"

namespace cprof::unwind {

template <typename T>
bool fits(int64_t value) {
  return value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max();
}

cp_rule bare_rule(cp_cfa_kind kind);

// Each gives false when a rule cannot say what the CFI row says.
bool set_cfa(const FrameState& state, const cp_machine& machine, cp_rule& rule);
bool set_frame_pointer(const FrameState& state, const cp_machine& machine, cp_rule& rule);
// The return address in memory or a register of its own, beside a CFA whose offset then has 16 bits.
bool set_separate_return_address(const RegisterRule& return_address, cp_rule& rule);
bool caller_sp_is_cfa(const FrameState& state, const cp_machine& machine);

}  // namespace cprof::unwind
