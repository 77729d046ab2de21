// Two ways on from such a frame. While it still stands, its caller's sp is right and only the return address is gone from
// its slot; the unwinder keeps a copy in its local context, so each word of the frame that follows a call and from which
// the walk reaches a root with exactly that sp is taken for it. In the last instructions, when all registers are the
// landing pad's already, the frame below is the landing pad's: its address is on top of the stack or in a register.
#include "unwind/cfi/eh_return.h"

#include <algorithm>

#include "unwind/cfi/unwinder_walk.h"

namespace cprof::unwind {
namespace {

constexpr size_t kNearLeaf = 4;              // the functions that copy registers are called by the one that returns
constexpr uint64_t kMaxFrameBytes = 4096;
constexpr int kMaxTries = 64;

class EhReturn {
 public:
  EhReturn(SnapshotUnwinder::Impl& walk, const RegisterSet& leaf, size_t max_depth)
      : walk_(walk), leaf_(leaf), max_depth_(max_depth) {}

  bool run() {
    size_t near = std::min(walk_.stack.frames.size(), kNearLeaf);
    for (size_t i = 0; i < near; i++)
      if (ends_by_eh_return(walk_.stack.frames[i])) return from_saved_address(i) || (i == 0 && from_landing_pad());
    return false;
  }

 private:
  bool ends_by_eh_return(const Frame& frame) {
    cp_rule rule{};
    return walk_.lookup(frame.pc - frame.is_return_address, rule) && rule.is_eh_return;
  }

  bool from_saved_address(size_t depth) {
    walk_.walk_from(leaf_, depth);
    uint64_t begin = walk_.frame.sp;
    walk_.walk_from(leaf_, depth + 1);
    const cp_frame caller = walk_.frame;
    if (walk_.full || walk_.stack.frames.size() != depth + 1 || caller.sp <= begin) return false;
    uint64_t end = std::min(caller.sp, begin + kMaxFrameBytes);
    int tries = 0;
    for (uint64_t slot = begin; slot < end && tries < kMaxTries; slot += 8) {
      uint64_t address = 0;
      if (walk_.read_word(&walk_, slot, &address) != 0 || !is_code(address - 1) || !walk_.modules->follows_call(address)) continue;
      tries++;
      if (reaches_root(depth + 1, address, caller.sp, caller.fp, false)) return true;
    }
    return false;
  }

  bool from_landing_pad() {
    walk_.walk_from(leaf_, 1);
    uint8_t number = walk_.cfi.eh_return_register;
    if (walk_.stack.frames.empty() || number >= CP_MAX_REGISTERS) return false;
    uint64_t sp = leaf_.value[walk_.core.sp], fp = leaf_.value[walk_.core.fp], target = leaf_.value[number], pc = 0;
    if (walk_.read_word(&walk_, target, &pc) == 0 && lands(pc, target + 8, fp)) return true;
    if (walk_.read_word(&walk_, sp, &pc) == 0 && lands(pc, sp + 8, fp)) return true;
    return lands(target, sp, fp);
  }

  bool lands(uint64_t pc, uint64_t sp, uint64_t fp) {
    return is_code(pc) && reaches_root(1, pc, sp, fp, true);
  }

  bool is_code(uint64_t pc) {
    cp_rule rule{};
    return walk_.lookup(pc, rule) && rule.cfa_kind != CP_CFA_NONE && rule.cfa_kind != CP_CFA_STOP;
  }

  bool reaches_root(size_t kept, uint64_t pc, uint64_t sp, uint64_t fp, bool is_exact) {
    walk_.stack.frames.resize(kept);
    walk_.frame = {pc, sp, fp, pc, nullptr, 0, is_exact};
    walk_.registers.valid = 0;
    walk_.origin = FrameOrigin::kCfi;
    return walk_.walk(max_depth_) == Progress::kStopped && walk_.stack.stop == StopReason::kUndefinedReturn;
  }

  SnapshotUnwinder::Impl& walk_;
  const RegisterSet& leaf_;
  size_t max_depth_;
};

}  // namespace

void continue_through_eh_return(SnapshotUnwinder::Impl& walk, const RegisterSet& leaf, size_t max_depth) {
  Stack before = walk.stack;
  if (!EhReturn(walk, leaf, max_depth).run()) walk.stack = std::move(before);
}

}  // namespace cprof::unwind
