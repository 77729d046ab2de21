// Stacks that were sampled while an exception is delivered. libgcc's _Unwind_RaiseException and _Unwind_Resume end by
// __builtin_eh_return: they write the landing pad's registers over their own saved ones, the return address among them,
// then load everything and jump. In between the CFI describes a frame whose contents belong to another. Used by
// SnapshotUnwinder after a walk that found no root. Private to unwind/cfi.
#pragma once

#include <cstddef>

#include "unwind/cfi/unwinder.h"

namespace cprof::unwind {

// Replaces walk.stack by one that reaches its root, or leaves it as it is.
void continue_through_eh_return(SnapshotUnwinder::Impl& walk, const RegisterSet& leaf, size_t max_depth);

}  // namespace cprof::unwind
