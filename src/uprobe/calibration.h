// What probes cost here and now: measured on two small functions of this program, probed as the target will be. Called
// once before a run; takes some 50 ms. Finds out, too, whether the kernel attaches many probes at once.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "collect/bpf/uprobe_abi.h"

namespace cprof::uprobe {

struct Calibration {
  bool is_multi = false;         // many probes by one link
  // By whether the kernel emulates a function's first instruction (0) or steps through it (1):
  uint64_t self_ns[2] = {0, 0};  // what is in the latency of a function that does nothing
  uint64_t pair_ns[2] = {0, 0};  // what such a call takes, for those around it
};

enum class Attach : uint8_t { kAuto, kMulti, kSingle };

// settings: as they will be; the target and the costs in them are replaced. A refusal of the kernel is an error.
Result<Calibration> calibrate(const uprobe_settings& settings, Attach attach, bool by_return_address);

}  // namespace cprof::uprobe
