// size-exempt: one walk, in a header so that its steps are inlined
// The walk of SnapshotUnwinder: look up the rule of the current pc (a direct-mapped cache in front of module search and
// row search), step, and repeat until a root or a reason to stop. Compact rows carry only pc, sp and the frame pointer.
// Where a rule wants another register in a frame that is not exact (ld.so's lazy binder computes its CFA from rbx), the
// walk begins again at the leaf in full mode, which runs the interpreter on every frame and so knows all callee-saved
// registers there. Private to unwind/cfi.
#pragma once

#include "unwind/cfi/interpreter.h"
#include "unwind/cfi/module_table_impl.h"
#include "unwind/cfi/unwinder.h"
#include "unwind/core/unwind_step.h"

namespace cprof::unwind {

inline constexpr size_t kCacheBits = 12;
inline constexpr uint64_t kRootGapBytes = 48;
inline constexpr uint64_t kNullPage = 64 * 1024;                  // no code lives below
inline constexpr uint64_t kFramePointerReach = 1024 * 1024;       // a frame larger than this is not believed
inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

enum class Progress : uint8_t { kGoOn, kStopped, kRestart };

struct SnapshotUnwinder::Impl {
  explicit Impl(const MachineCfi& machine) : cfi(machine), core(*machine.core), cache(size_t{1} << kCacheBits) {}

  struct CacheEntry {
    uint64_t pc = 0;
    uint64_t tag = 0;      // which process and mappings it holds for; 0: empty
    cp_rule rule{};
  };

  void begin(const RegisterSet& leaf, bool with_all_registers) {
    full = with_all_registers;
    registers = leaf;
    load_frame();
    frame.exact = 1;
    origin = FrameOrigin::kRegisters;
    stack.frames.clear();
  }

  void walk_from(const RegisterSet& leaf, size_t max_depth) {
    begin(leaf, false);
    if (walk(max_depth) != Progress::kRestart) return;
    begin(leaf, true);
    walk(max_depth);
  }

  Progress walk(size_t max_depth) {
    for (;;) {
      if (frame.pc == 0 && !stack.frames.empty()) return stop(StopReason::kNullReturn);
      cp_rule rule;
      bool is_mapped = lookup(frame.pc - !frame.exact, rule);
      if (!is_mapped && !stack.frames.empty())
        return stop(frame.pc < kNullPage ? StopReason::kNullReturn : StopReason::kNoMapping);
      if (stack.frames.size() >= max_depth) return stop(StopReason::kMaxDepth);
      stack.frames.push_back({frame.pc, !frame.exact, origin});
      if (!is_mapped) return stop(StopReason::kNoMapping);
      Progress progress = step(rule);
      if (progress != Progress::kGoOn) return progress;
    }
  }

  // False: pc lies in no executable mapping.
  bool lookup(uint64_t pc, cp_rule& rule) {
    CacheEntry& entry = cache[(pc * kGolden) >> (64 - kCacheBits)];
    if (entry.pc == pc && entry.tag == tag) {
      rule = entry.rule;
      return true;
    }
    const Module* found = find_module(pc);
    if (!found) return false;
    entry = {pc, tag, table_of(*found) ? table_of(*found)->rule_at(pc - found->bias) : cp_rule{}};
    rule = entry.rule;
    return true;
  }

  const Module* find_module(uint64_t pc) {
    if (module && pc >= module->start && pc < module->end) return &*module;
    module = modules->find(pc);
    return module ? &*module : nullptr;
  }

  const ModuleTable::Impl* table_of(const Module& found) const {
    return found.table && found.table->impl().machine == &cfi ? &found.table->impl() : nullptr;
  }

  Progress step(const cp_rule& rule) {
    switch (rule.cfa_kind) {
      case CP_CFA_NONE: return gap_step();
      case CP_CFA_SIGNAL: return signal_step();
      case CP_CFA_COMPLEX: return cfi_step();
      case CP_CFA_STOP:
      case CP_CFA_BAD: return row_step(rule);
      default: return full && has_fde() ? cfi_step() : row_step(rule);
    }
  }

  bool has_fde() {
    uint64_t pc = frame.pc - !frame.exact;
    const Module* found = find_module(pc);
    return found && table_of(*found) && table_of(*found)->find_fde(pc - found->bias);
  }

  Progress row_step(const cp_rule& rule) {
    bool knows_registers = full || frame.exact;
    frame.registers = knows_registers ? registers.value : nullptr;
    frame.valid = knows_registers ? registers.valid : 0;
    switch (cp_step_inline(&core, &rule, &frame, read_word, this)) {
      case CP_OK: break;
      case CP_STOPPED: return stop(StopReason::kUndefinedReturn);
      case CP_NO_PROGRESS: return stop(StopReason::kNoProgress);
      case CP_READ_FAILED: return stop_for_read();
      case CP_NEEDS_REGISTERS: return missing_register();
      default: return stop(StopReason::kBadUnwindInfo);
    }
    origin = FrameOrigin::kCfi;
    if (full) save_frame();
    return Progress::kGoOn;
  }

  Progress cfi_step() {
    const Module* found = find_module(frame.pc - !frame.exact);
    if (!found || !table_of(*found)) return stop(StopReason::kBadUnwindInfo);
    if (!full && !frame.exact) registers.valid = 0, save_frame();
    CfiStepInput input{found->bias, frame.exact != 0};
    switch (interpret_step(*table_of(*found), input, registers, *memory)) {
      case CfiStep::kOk: break;
      case CfiStep::kRoot: return stop(StopReason::kUndefinedReturn);
      case CfiStep::kMissingRegister: return missing_register();
      case CfiStep::kNoProgress: return stop(StopReason::kNoProgress);
      case CfiStep::kBeyondSnapshot: return stop(StopReason::kTruncatedSnapshot);
      case CfiStep::kUnreadable: return stop(StopReason::kUnreadableMemory);
      default: return stop(StopReason::kBadUnwindInfo);
    }
    load_frame();
    if (input.is_exact) mark_trampoline();
    frame.exact = input.is_exact;
    origin = input.is_exact ? FrameOrigin::kSignal : FrameOrigin::kCfi;
    return Progress::kGoOn;
  }

  // The kernel made the handler return to the trampoline's first byte: no call is before it.
  void mark_trampoline() { stack.frames.back().is_return_address = false; }

  // Behind a signal frame all registers are known again, as at the leaf.
  Progress signal_step() {
    RegisterSet interrupted;
    for (uint32_t n = 0; n < core.register_count; n++) {
      uint64_t address = frame.sp + static_cast<uint64_t>(static_cast<int64_t>(core.sigcontext[n]));
      if (read_word(this, address, &interrupted.value[n]) != 0) return stop_for_read();
      interrupted.valid |= uint64_t{1} << n;
    }
    registers = interrupted;
    load_frame();
    mark_trampoline();
    frame.exact = 1;
    origin = FrameOrigin::kSignal;
    return Progress::kGoOn;
  }

  // No CFI at this pc. One gap is known by what follows it: the few instructions of clone3 in which a new thread finds
  // its start, before a root.
  Progress gap_step() {
    cp_rule beside;
    if (!frame.exact || !leads_to_root()) return returning_step();
    uint64_t return_address = 0;
    if (read_word(this, frame.sp, &return_address) != 0 || return_address == 0 || !lookup(return_address - 1, beside))
      return stop(StopReason::kUndefinedReturn);
    frame.pc = frame.lr = return_address;  // the thread that called clone goes on
    frame.sp += 8;
    frame.exact = 0;
    origin = FrameOrigin::kCfi;
    if (full) save_frame();
    return Progress::kGoOn;
  }

  bool leads_to_root() {
    cp_rule rule{};
    for (uint64_t pc = frame.pc + 1; pc < frame.pc + kRootGapBytes; pc++) {
      if (!lookup(pc, rule)) return false;
      if (rule.cfa_kind != CP_CFA_NONE) return rule.cfa_kind == CP_CFA_STOP;
    }
    return false;
  }

  // Code that is about to return says where to.
  Progress returning_step() {
    const bool has_return_addresses_on_stack = core.lr >= CP_MAX_REGISTERS;  // x86-64
    const auto code = has_return_addresses_on_stack ? modules->code_at(frame.pc) : std::nullopt;
    uint64_t room = 0, return_address = 0;
    if (!code || !cp_return_room(*code, &room)) return frame_pointer_step();
    if (read_word(this, frame.sp + room, &return_address) != 0) return stop_for_read();
    cp_rule ignored;
    if (return_address != 0 && !lookup(return_address - 1, ignored)) return stop(StopReason::kNoUnwindInfo);
    frame.pc = frame.lr = return_address;
    frame.sp += room + 8;
    frame.exact = 0;
    origin = FrameOrigin::kCfi;
    if (full) save_frame();
    return Progress::kGoOn;
  }

  // Code without CFI. A frame pointer is believed only if it points into the stack just above and its return address
  // into code: else the walk would go on through whatever rbp held.
  Progress frame_pointer_step() {
    uint64_t fp = frame.fp, saved = 0, return_address = 0;
    if (fp < frame.sp || fp - frame.sp >= kFramePointerReach || fp % 8 != 0) return stop(StopReason::kNoUnwindInfo);
    if (read_word(this, fp, &saved) != 0 || read_word(this, fp + 8, &return_address) != 0)
      return failed_read == Memory::Read::kBeyondSnapshot ? stop(StopReason::kTruncatedSnapshot)
                                                          : stop(StopReason::kNoUnwindInfo);
    return_address &= core.address_mask;
    cp_rule ignored;
    if (return_address != 0 && !lookup(return_address - 1, ignored)) return stop(StopReason::kNoUnwindInfo);
    frame.pc = frame.lr = return_address;
    frame.sp = fp + 16;
    frame.fp = saved;
    frame.exact = 0;
    origin = FrameOrigin::kFramePointer;
    if (full) save_frame();
    return Progress::kGoOn;
  }

  Progress missing_register() { return full ? stop(StopReason::kBadUnwindInfo) : Progress::kRestart; }

  Progress stop_for_read() {
    return stop(failed_read == Memory::Read::kBeyondSnapshot ? StopReason::kTruncatedSnapshot
                                                             : StopReason::kUnreadableMemory);
  }
  Progress stop(StopReason reason) {
    stack.stop = reason;
    return Progress::kStopped;
  }

  static int read_word(void* self, uint64_t address, uint64_t* value) {
    Impl* impl = static_cast<Impl*>(self);
    Memory::Read read = impl->memory->read_u64(address, *value);
    if (read == Memory::Read::kOk) return 0;
    impl->failed_read = read;
    return 1;
  }

  uint64_t known(uint32_t n) const { return n < CP_MAX_REGISTERS && (registers.valid >> n & 1) ? registers.value[n] : 0; }
  void load_frame() {
    frame = {};
    frame.pc = known(core.pc);
    frame.sp = known(core.sp);
    frame.fp = known(core.fp);
    frame.lr = known(core.lr);
  }
  // After a step that knew only pc, sp and fp: what else a call preserves stays known in full mode.
  void save_frame() {
    registers.valid &= cfi.callee_saved;
    auto set = [&](uint32_t n, uint64_t value) {
      if (n >= CP_MAX_REGISTERS) return;
      registers.value[n] = value;
      registers.valid |= uint64_t{1} << n;
    };
    set(core.pc, frame.pc);
    set(core.sp, frame.sp);
    set(core.fp, frame.fp);
    set(core.lr, frame.lr);
  }

  // Entries made under generation 0 hold for one call only.
  void set_tag() {
    uint64_t generation = modules->generation();
    uint64_t mixed = (modules->process_key() + 1) * kGolden ^ (generation * 0xd6e8feb86659fd93);
    mixed ^= mixed >> 32;
    tag = generation ? mixed | 1 : ++calls * 2;
  }

  const MachineCfi& cfi;
  const cp_machine& core;
  std::vector<CacheEntry> cache;
  Stack stack;
  uint64_t calls = 0;

  // One unwind() call:
  Memory* memory = nullptr;
  ModuleProvider* modules = nullptr;
  uint64_t tag = 0;
  std::optional<Module> module;    // the last one found
  bool full = false;
  RegisterSet registers;           // of the current frame where it is exact, or in full mode
  cp_frame frame{};
  FrameOrigin origin = FrameOrigin::kRegisters;
  Memory::Read failed_read = Memory::Read::kOk;
};

}  // namespace cprof::unwind
