// Does a call instruction end right before this return address? The plausibility check for frames that only our unwinder
// found.
#pragma once

#include <cstdint>
#include <span>

namespace cprof::oracle {

// before: the bytes that precede the return address, nearest last (8 of them, or fewer at a mapping's start).
bool ends_with_call(std::span<const uint8_t> before);

// The signal return stub, which a handler returns to though nothing called from there.
bool is_signal_return_stub(std::span<const uint8_t> at);

}  // namespace cprof::oracle
