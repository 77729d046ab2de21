// The user frames of a stack that the source walked itself with our unwind tables. What the tables knew is found again
// from the addresses: the first is exact, each further one is where a call returns to, except around a signal frame,
// whose code no call reaches and whose caller was interrupted.
#include <algorithm>

#include "pipeline/user_stack.h"

namespace cprof::pipeline {
namespace {

profile::StackEnd to_stack_end(event::WalkEnd end) {
  using enum event::WalkEnd;
  switch (end) {
    case kComplete: return profile::StackEnd::kComplete;
    case kUnknown:
    case kNoRegisters: return profile::StackEnd::kNotUnwound;
    case kMaxDepth: return profile::StackEnd::kMaxDepth;
    case kNoMapping: return profile::StackEnd::kNoMapping;
    case kNoUnwindInfo: return profile::StackEnd::kNoUnwindInfo;
    case kBadUnwindInfo: return profile::StackEnd::kBadUnwindInfo;
    case kUnreadableMemory: return profile::StackEnd::kUnreadableMemory;
    case kNoProgress: return profile::StackEnd::kNoProgress;
    case kBadPc: return profile::StackEnd::kBadPc;
    case kExecInProgress: return profile::StackEnd::kExecInProgress;
    case kUnsupportedAbi: return profile::StackEnd::kUnsupportedAbi;
  }
  return profile::StackEnd::kNotUnwound;
}

}  // namespace

UserStack UserStackReader::read_walked(const event::StackDef& def, space::Process& process) {
  begin_read(process, def.task.tid ? def.task.tid : process.pid);
  if (def.user_end == event::WalkEnd::kUnknown)
    return def.user_chain.empty() ? UserStack{} : from_chain(def.user_chain, process);
  UserStack result;
  result.end = to_stack_end(def.user_end);
  result.had_registers = profile::had_user_stack(result.end);
  chain_frames_.clear();
  if (result.end != profile::StackEnd::kExecInProgress) append_walked(def, process);
  result.frames = chain_frames_;
  if (def.user_chain.size() > options_.max_depth && !chain_frames_.empty()) result.end = profile::StackEnd::kMaxDepth;
  return result;
}

void UserStackReader::append_walked(const event::StackDef& def, space::Process& process) {
  bool is_exact = true;
  for (uint64_t pc : def.user_chain.first(std::min(def.user_chain.size(), options_.max_depth))) {
    bool is_signal_frame = false;
    if (const space::MappingPtr* mapping = code_at(process, pc - !is_exact, def.time_ns)) {
      const MappedModule& module = modules_.of(process, *mapping);
      const unwind::ModuleTable* table = module.file ? module.file->table.get() : nullptr;
      is_signal_frame = table && table->is_signal_frame(pc - !is_exact - module.bias);
    }
    unwind::FrameOrigin origin = !chain_frames_.empty() && is_exact ? unwind::FrameOrigin::kSignal
                                 : is_exact                          ? unwind::FrameOrigin::kRegisters
                                                                     : unwind::FrameOrigin::kCfi;
    chain_frames_.push_back({pc, !is_exact && !is_signal_frame, origin});
    is_exact = is_signal_frame;
  }
}

}  // namespace cprof::pipeline
