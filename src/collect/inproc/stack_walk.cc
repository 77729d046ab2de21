#include "collect/inproc/stack_walk.h"

#include "unwind/core/unwind_step.h"

namespace cprof::inproc {
namespace {

constexpr uint64_t kNullPage = 64 * 1024;              // no code lives below
constexpr uint64_t kRootGapBytes = 48;
constexpr uint64_t kFramePointerReach = 1024 * 1024;   // a frame larger than this is not believed

enum class Step : uint8_t { kGoOn, kStopped };

class Walker {
 public:
  Walker(const WalkInput& input, Registers& registers, StackReader& reader, FrameSink& sink)
      : input_(input), machine_(*input.machine), registers_(registers), reader_(reader), sink_(sink) {}

  WalkEnd walk() {
    load_frame();
    for (;;) {
      if (frame_.pc == 0 && sink_.count) return WalkEnd::kRoot;
      const cp_rule* rule = lookup(frame_.pc - !frame_.exact);
      if (!rule && sink_.count) return frame_.pc < kNullPage ? WalkEnd::kRoot : WalkEnd::kNoModule;
      if (sink_.count >= sink_.limit) return WalkEnd::kMaxDepth;
      sink_.put(frame_.pc | (frame_.exact ? kExactPc : 0));
      if (!rule) return WalkEnd::kNoModule;
      if (step(*rule) == Step::kStopped) return end_;
      if (left_fiber()) return WalkEnd::kRoot;
    }
  }

 private:
  const Module* module_at(uint64_t pc) {
    if (last_ && pc >= last_->start && pc < last_->end) return last_;
    const Module* found = input_.modules->find(pc);
    if (found) last_ = found;
    return found;
  }

  // Null: no code is known there.
  const cp_rule* lookup(uint64_t pc) {
    RuleCache::Entry& entry = input_.cache->of(pc);
    if (entry.pc == pc) return &entry.rule;
    const Module* module = module_at(pc);
    if (!module) return nullptr;
    const cp_rule* found = rule_at(module, pc);
    entry.pc = pc;
    entry.rule = found ? *found : cp_rule{};
    return &entry.rule;
  }

  // Null: nothing is known. In sigreturn the pc is behind the trampoline's last instruction, where its rows have ended.
  static const cp_rule* rule_at(const Module* module, uint64_t pc) {
    if (!module->table) return nullptr;
    const cp_rule* known = cp_find_rule_inline(module->table, pc - module->bias);
    if (known && known->cfa_kind != CP_CFA_NONE) return known;
    const cp_rule* before = cp_find_rule_inline(module->table, pc - 1 - module->bias);
    return before && before->cfa_kind == CP_CFA_SIGNAL ? before : known;
  }

  Step step(const cp_rule& rule) {
    if (rule.cfa_kind == CP_CFA_NONE) return gap_step();
    if (rule.cfa_kind == CP_CFA_SIGNAL) return signal_step();
    frame_.registers = frame_.exact ? registers_.value : nullptr;
    frame_.valid = frame_.exact ? ~uint64_t{0} >> (64 - machine_.register_count) : 0;
    switch (cp_step_inline(&machine_, &rule, &frame_, StackReader::read_word, &reader_)) {
      case CP_OK: return Step::kGoOn;
      case CP_STOPPED: return stop(WalkEnd::kRoot);
      case CP_NO_PROGRESS: return stop(WalkEnd::kNoProgress);
      case CP_READ_FAILED: return stop(WalkEnd::kUnreadable);
      default: return stop(WalkEnd::kBadRule);
    }
  }

  // Behind a signal frame all registers are known again, and the stack may be another.
  Step signal_step() {
    for (uint32_t n = 0; n < machine_.register_count; n++) {
      const uint64_t address = frame_.sp + static_cast<uint64_t>(static_cast<int64_t>(machine_.sigcontext[n]));
      if (reader_.read(address, &registers_.value[n])) return stop(WalkEnd::kUnreadable);
    }
    load_frame();
    return Step::kGoOn;
  }

  // The few instructions of clone3 in which a new thread finds its start, before a root.
  Step gap_step() {
    if (!frame_.exact || !leads_to_root()) return frame_pointer_step();
    uint64_t return_address = 0;
    if (reader_.read(frame_.sp, &return_address) || return_address == 0 || !module_at(return_address - 1))
      return stop(WalkEnd::kRoot);
    frame_.pc = frame_.lr = return_address;
    frame_.sp += 8;
    frame_.exact = 0;
    return Step::kGoOn;
  }

  bool leads_to_root() {
    const Module* module = module_at(frame_.pc);
    for (uint64_t pc = frame_.pc + 1; module && pc < frame_.pc + kRootGapBytes && pc < module->end; pc++) {
      const cp_rule* rule = rule_at(module, pc);
      if (rule && rule->cfa_kind != CP_CFA_NONE) return rule->cfa_kind == CP_CFA_STOP;
    }
    return false;
  }

  // Code without unwind information: a frame pointer is believed only if it points just above in the stack and its return
  // address into code.
  Step frame_pointer_step() {
    const uint64_t fp = frame_.fp;
    uint64_t saved = 0, return_address = 0;
    if (fp < frame_.sp || fp - frame_.sp >= kFramePointerReach || fp % 8 != 0) return stop(WalkEnd::kNoRule);
    if (reader_.read(fp, &saved) || reader_.read(fp + 8, &return_address)) return stop(WalkEnd::kNoRule);
    return_address &= machine_.address_mask;
    if (return_address != 0 && !module_at(return_address - 1)) return stop(WalkEnd::kNoRule);
    frame_.pc = frame_.lr = return_address;
    frame_.sp = fp + 16;
    frame_.fp = saved;
    frame_.exact = 0;
    return Step::kGoOn;
  }

  void load_frame() {
    frame_ = {};
    frame_.pc = registers_.value[machine_.pc];
    frame_.sp = registers_.value[machine_.sp];
    frame_.fp = registers_.value[machine_.fp];
    if (machine_.lr < CP_MAX_REGISTERS) frame_.lr = registers_.value[machine_.lr];
    frame_.exact = 1;
    reader_.set_stack_pointer(frame_.sp);
    is_in_fiber_ = input_.base_of_fiber.holds(frame_.sp);
  }

  bool left_fiber() const { return is_in_fiber_ && !input_.base_of_fiber.holds(frame_.sp); }

  Step stop(WalkEnd end) {
    end_ = end;
    return Step::kStopped;
  }

  const WalkInput& input_;
  const cp_machine& machine_;
  Registers& registers_;
  StackReader& reader_;
  FrameSink& sink_;
  cp_frame frame_{};
  const Module* last_ = nullptr;
  WalkEnd end_ = WalkEnd::kRoot;
  bool is_in_fiber_ = false;
};

}  // namespace

WalkEnd walk_stack(const WalkInput& input, Registers& registers, StackReader& reader, FrameSink& sink) {
  input.cache->begin(input.modules->generation);
  return Walker(input, registers, reader, sink).walk();
}

}  // namespace cprof::inproc
