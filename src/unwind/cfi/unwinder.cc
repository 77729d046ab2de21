#include "unwind/cfi/unwinder.h"

#include "unwind/cfi/eh_return.h"
#include "unwind/cfi/unwinder_walk.h"

namespace cprof::unwind {

SnapshotUnwinder::SnapshotUnwinder(Machine machine)
    : impl_(std::make_unique<Impl>(machine == Machine::kX86_64 ? kX86_64Cfi : kAarch64Cfi)) {}
SnapshotUnwinder::~SnapshotUnwinder() = default;

const Stack& SnapshotUnwinder::unwind(const RegisterSet& registers, Memory& memory, ModuleProvider& modules,
                                      size_t max_depth) {
  Impl& impl = *impl_;
  impl.memory = &memory;
  impl.modules = &modules;
  impl.module.reset();
  impl.set_tag();
  uint64_t needed = uint64_t{1} << impl.core.pc | uint64_t{1} << impl.core.sp;
  if ((registers.valid & needed) != needed) {
    impl.stack.frames.clear();
    impl.stop(StopReason::kUnsupportedAbi);
    return impl.stack;
  }
  impl.walk_from(registers, max_depth);
  if (impl.stack.stop != StopReason::kUndefinedReturn) continue_through_eh_return(impl, registers, max_depth);
  return impl.stack;
}

}  // namespace cprof::unwind
