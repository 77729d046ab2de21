/* The bodies of cp_find_rule and cp_step, to be inlined where a call per frame would show: the BPF program (which cannot
 * call through a pointer: the reader must be a constant) and the snapshot unwinder. Everyone else calls unwind_rows.h.
 */
#ifndef CPROF_UNWIND_STEP_H
#define CPROF_UNWIND_STEP_H

#include "unwind/core/unwind_rows.h"

#define CP_INLINE static inline __attribute__((always_inline))

/* Code without CFI that says itself how it returns: how far above sp its return address lies. code: the 8 bytes at the pc of
 * x86-64 code, the first one lowest. Between the frames of CPython's interpreter stand such trampolines (python -X perf):
 * "sub $8,%rsp; call *%rcx; add $8,%rsp; ret". 0: they do not tell. */
CP_INLINE int cp_return_room(uint64_t code, uint64_t *room) {
  const uint64_t is_ret = 0xc3, is_add_ret = 0xc300c48348ull, is_call_add_ret = 0xc300c48348d1ffull, is_sub_call = 0xd1ff08ec8348ull;
  uint32_t add = 0;
  if ((code & 0xff) == is_ret || (code & 0xffffffffffffull) == is_sub_call) add = 0;
  else if ((code & 0xff00ffffffull) == is_add_ret) add = (uint32_t)(code >> 24) & 0xff;
  else if ((code & 0xff00ffffffffffull) == is_call_add_ret) add = (uint32_t)(code >> 40) & 0xff;
  else return 0;
  if (add % 8 || add >= 0x80) return 0;
  *room = add;
  return 1;
}

CP_INLINE const cp_rule *cp_find_rule_inline(const cp_table *table, uint64_t svma) {
  uint64_t page = (svma - table->base) >> CP_PAGE_BITS;
  if (svma < table->base || page >= table->page_count) return 0;
  uint32_t low = table->pages[page], end = table->pages[page + 1];
  if (low >= end) return 0;

  /* The last row that does not begin after svma; the page's first row never does. */
  uint32_t key = CP_MAKE_ROW(svma & 0xfff, 0xfffff);
  uint32_t high = end - 1;
  for (int step = 0; step < CP_SEARCH_STEPS && low < high; step++) {
    uint32_t middle = low + (high - low + 1) / 2;
    if (table->rows[middle] <= key)
      low = middle;
    else
      high = middle - 1;
  }
  uint32_t rule = CP_ROW_RULE(table->rows[low]);
  return rule < table->rule_count ? &table->rules[rule] : 0;
}

CP_INLINE enum cp_status cp_register(const cp_frame *frame, int16_t number, uint64_t *value) {
  if (!frame->registers || number < 0 || number >= CP_MAX_REGISTERS || !(frame->valid >> number & 1))
    return CP_NEEDS_REGISTERS;
  *value = frame->registers[number];
  return CP_OK;
}

CP_INLINE enum cp_status cp_deref(cp_reader read, void *context, uint64_t address, int64_t post, uint64_t *value) {
  if (read(context, address, value)) return CP_READ_FAILED;
  *value += (uint64_t)post;
  return CP_OK;
}

CP_INLINE enum cp_status cp_cfa(const cp_rule *rule, const cp_frame *frame, cp_reader read, void *context,
                                uint64_t *cfa) {
  int64_t offset = CP_RA_IS_NARROW(rule->ra_kind) ? rule->narrow.offset : rule->offset;
  enum cp_status status;
  switch (rule->cfa_kind) {
    case CP_CFA_STOP: return CP_STOPPED;
    case CP_CFA_SP: *cfa = frame->sp + (uint64_t)offset; return CP_OK;
    case CP_CFA_FP: *cfa = frame->fp + (uint64_t)offset; return CP_OK;
    case CP_CFA_PLT: *cfa = frame->sp + ((int64_t)(frame->pc & 15) >= offset ? 16 : 8); return CP_OK;
    case CP_CFA_DEREF_SP: return cp_deref(read, context, frame->sp + (uint64_t)(int64_t)rule->deref.first, rule->deref.post, cfa);
    case CP_CFA_DEREF_FP: return cp_deref(read, context, frame->fp + (uint64_t)(int64_t)rule->deref.first, rule->deref.post, cfa);
    case CP_CFA_REG:
      status = cp_register(frame, rule->narrow.second, cfa);
      *cfa += status == CP_OK ? (uint64_t)(int64_t)rule->narrow.offset : 0;
      return status;
    case CP_CFA_COMPLEX: return CP_NEEDS_CFI;
    case CP_CFA_BAD: return CP_BROKEN;
    default: return CP_NO_RULE;
  }
}

CP_INLINE enum cp_status cp_return_address(const cp_rule *rule, const cp_frame *frame, uint64_t cfa, cp_reader read,
                                           void *context, uint64_t *value) {
  uint64_t slot = cfa - 8;
  switch (rule->ra_kind) {
    case CP_RA_BELOW_CFA: break;
    case CP_RA_IN_LR: *value = frame->lr; return CP_OK;
    case CP_RA_AFTER_FP: slot = cfa + (uint64_t)(int64_t)rule->fp_offset + 8; break;
    case CP_RA_AT_CFA: slot = cfa + (uint64_t)(int64_t)rule->fp_offset; break;
    case CP_RA_AT_SECOND: slot = cfa + (uint64_t)(int64_t)rule->narrow.second; break;
    case CP_RA_REGISTER: return cp_register(frame, rule->narrow.second, value);
    default: return CP_BROKEN;
  }
  /* In an epilogue the slot may lie below sp already: the link register has been loaded again. */
  if (rule->ra_kind != CP_RA_BELOW_CFA && frame->exact && slot < frame->sp) {
    *value = frame->lr;
    return CP_OK;
  }
  return read(context, slot, value) ? CP_READ_FAILED : CP_OK;
}

CP_INLINE enum cp_status cp_frame_pointer(const cp_rule *rule, const cp_frame *frame, uint64_t cfa, cp_reader read,
                                          void *context, uint64_t *value) {
  uint64_t base = rule->fp_kind == CP_FP_AT_FP ? frame->fp : cfa;
  uint64_t slot = base + (uint64_t)(int64_t)rule->fp_offset;
  *value = frame->fp;
  if (rule->fp_kind == CP_FP_SAME) return CP_OK;
  if (rule->fp_kind == CP_FP_UNDEFINED) *value = 0;
  if (rule->fp_kind == CP_FP_UNDEFINED) return CP_OK;
  /* Epilogues again: a slot below sp has been popped, so the register is live (and the slot may be overwritten). */
  if (rule->fp_kind == CP_FP_AT_CFA && frame->exact && slot < frame->sp) return CP_OK;
  return read(context, slot, value) ? CP_READ_FAILED : CP_OK;
}

/* The kernel pushed every register above sp. The interrupted frame is exact again, on whatever stack it was. */
CP_INLINE enum cp_status cp_signal_step(const cp_machine *machine, cp_frame *frame, cp_reader read, void *context) {
  uint64_t pc, sp, fp, lr = 0;
  if (read(context, frame->sp + (uint64_t)(int64_t)machine->sigcontext[machine->pc], &pc)) return CP_READ_FAILED;
  if (read(context, frame->sp + (uint64_t)(int64_t)machine->sigcontext[machine->sp], &sp)) return CP_READ_FAILED;
  if (read(context, frame->sp + (uint64_t)(int64_t)machine->sigcontext[machine->fp], &fp)) return CP_READ_FAILED;
  if (machine->lr < CP_MAX_REGISTERS &&
      read(context, frame->sp + (uint64_t)(int64_t)machine->sigcontext[machine->lr], &lr))
    return CP_READ_FAILED;
  frame->pc = pc;
  frame->sp = sp;
  frame->fp = fp;
  frame->lr = lr;
  frame->registers = 0;
  frame->valid = 0;
  frame->exact = 1;
  return CP_OK;
}

CP_INLINE enum cp_status cp_step_inline(const cp_machine *machine, const cp_rule *rule, cp_frame *frame, cp_reader read,
                                        void *context) {
  uint64_t cfa = 0, pc = 0, fp = 0;
  enum cp_status status;
  if (rule->cfa_kind == CP_CFA_SIGNAL) return cp_signal_step(machine, frame, read, context);
  status = cp_cfa(rule, frame, read, context, &cfa);
  if (status != CP_OK) return status;
  /* A function that has pushed nothing may sit at its caller's sp (aarch64 leaf, vfork); a caller cannot. */
  if (cfa < frame->sp || (cfa == frame->sp && !frame->exact)) return CP_NO_PROGRESS;
  status = cp_return_address(rule, frame, cfa, read, context, &pc);
  if (status != CP_OK) return status;
  status = cp_frame_pointer(rule, frame, cfa, read, context, &fp);
  if (status != CP_OK) return status;
  frame->pc = pc & machine->address_mask;
  frame->sp = cfa;
  frame->fp = fp;
  frame->lr = frame->pc;
  frame->registers = 0;
  frame->valid = 0;
  frame->exact = 0;
  return CP_OK;
}

#endif
