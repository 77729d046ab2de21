/* The walk over one stack's user frames, one frame a call, as the BPF programs do it. Freestanding C over functions that
 * the includer defines before: the BPF programs give map lookups and bpf_probe_read_user, the unit test plain memory.
 * What the tables cannot tell ends the walk with wants_snapshot set: user space can tell, with all registers and the
 * interpreter of CFI. A walk that ends otherwise ends as unwind/cfi/unwinder.cc would: keep the two alike.
 *
 * Beside what walk_memory.h and walk_rows.h want:
 *   static const cp_rule *walk_rule(uint32_t index);
 *   static const struct sampler_module *walk_module(uint32_t index);
 *   static const struct sampler_mapping *walk_mapping(uint32_t index);
 *   static void walk_want_module(struct user_walk *walk, uint32_t module);
 *   static int walk_learn(struct user_walk *walk, uint64_t pc);        fills walk->found for an unknown pc; 0: no, and
 *                                                                      surely_unmapped when that is final
 */
#ifndef CPROF_USER_WALK_H
#define CPROF_USER_WALK_H

#include "collect/bpf/walk_memory.h"
#include "collect/bpf/walk_rows.h"
#include "unwind/core/unwind_machines.h"

#define WALK_NULL_PAGE (64 * 1024)        /* no code lives below */
#define WALK_ROOT_GAP 48                  /* clone3 between its system call and the root */
#define WALK_EH_RETURN_DEPTH 4            /* what copies registers is called by the function that returns */
#define WALK_FRAME_REACH (1024 * 1024)    /* a frame larger than this is not believed */
#define WALK_KNOWN_RUN 16                 /* frames a call: the verifier looks at each */

struct user_walk {
  uint64_t pc, sp, fp;
  uint64_t hash;                          /* of the frames so far */
  uint64_t owner;                         /* names the process and what it has mapped; 0: nobody told of it */
  struct sampler_mapping found;           /* the last mapping used */
  uint32_t first, count;                  /* the process's mappings */
  uint32_t depth, max_depth;
  uint32_t end;                           /* enum sampler_end */
  uint32_t context;                       /* the includer's */
  uint8_t exact;                          /* pc was interrupted, it is no return address */
  uint8_t registers_known;                /* registers are this frame's: only at the leaf */
  uint8_t wants_snapshot;
  uint8_t surely_unmapped;                /* the pc looked for last lies in no code */
  uint8_t through_eh_return;
  uint8_t found_is_learned;               /* found is not among the mappings that owner stands for */
  uint8_t padding[2];
  uint64_t registers[CP_MAX_REGISTERS];
};

static int walk_learn(struct user_walk *walk, uint64_t pc);
static void walk_want_module(struct user_walk *walk, uint32_t module);

static const cp_machine walk_machine = CP_MACHINE_X86_64;

CP_INLINE uint64_t walk_mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9fb21c651e98df25ull;
  return hash ^ hash >> 32;
}

CP_INLINE int walk_stop(struct user_walk *walk, uint32_t end) {
  walk->end = end;
  return 1;
}

/* An end that no rule vouches for. Where an exception was being delivered the frames before it may be another stack's:
 * user space can tell (unwind/cfi/eh_return.cc). */
CP_INLINE int walk_stop_at_value(struct user_walk *walk, uint32_t end) {
  walk->wants_snapshot |= walk->through_eh_return;
  return walk_stop(walk, end);
}

CP_INLINE int walk_ask(struct user_walk *walk, uint32_t end) {
  walk->wants_snapshot = 1;
  return walk_stop(walk, end);
}

/* What is mapped at an unknown address user space may know by now. */
CP_INLINE int walk_stop_unmapped(struct user_walk *walk, uint32_t end) {
  walk->wants_snapshot = !walk->surely_unmapped;
  return walk_stop_at_value(walk, end);
}

CP_INLINE int walk_is_in(const struct sampler_mapping *mapping, uint64_t pc) {
  return pc >= mapping->start && pc < mapping->end;
}

/* Sets walk->found. 0: pc lies in no executable mapping that is known. */
WALK_FUNCTION int walk_find_mapping(struct user_walk *walk, uint64_t pc) {
  if (!walk) return 0;
  if (walk_is_in(&walk->found, pc)) return 1;
  walk->surely_unmapped = 0;
  uint32_t low = 0, high = walk->count;   /* the last entry that does not begin after pc is in [low, high) */
  for (int step = 0; step < SAMPLER_MAPPING_STEPS; step++) {
    if (high - low < 2 || high < low) break;
    uint32_t middle = low + (high - low) / 2;
    const struct sampler_mapping *mapping = walk_mapping(walk->first + middle);
    if (!mapping) return 0;
    if (mapping->start <= pc) low = middle;
    else high = middle;
  }
  const struct sampler_mapping *mapping = walk->count ? walk_mapping(walk->first + low) : 0;
  if (mapping && walk_is_in(mapping, pc)) {
    walk->found = *mapping;
    walk->found_is_learned = 0;
    return 1;
  }
  walk->found_is_learned = 1;
  return walk_learn(walk, pc);
}

CP_INLINE int walk_rule_is(uint32_t index, uint8_t kind) {
  const cp_rule *rule = walk_rule(index);
  return rule && rule->cfa_kind == kind;
}

/* Code without CFI. A frame pointer is believed only if it points into the stack just above and its return address into
 * code. */
CP_INLINE int walk_frame_pointer_step(struct user_walk *walk) {
  uint64_t fp = walk->fp, saved = 0, return_address = 0;
  if (fp < walk->sp || fp - walk->sp >= WALK_FRAME_REACH || fp % 8) return walk_stop_at_value(walk, SAMPLER_END_NO_UNWIND_INFO);
  if (walk_read(fp, &saved) || walk_read(fp + 8, &return_address))
    return walk_stop_at_value(walk, SAMPLER_END_NO_UNWIND_INFO);
  if (return_address && !walk_find_mapping(walk, return_address - 1))
    return walk_stop_unmapped(walk, SAMPLER_END_NO_UNWIND_INFO);
  walk->pc = return_address;
  walk->sp = fp + 16;
  walk->fp = saved;
  walk->exact = walk->registers_known = 0;
  return 0;
}

/* Code that is about to return says where to. */
CP_INLINE int walk_returning_step(struct user_walk *walk, uint64_t room) {
  uint64_t return_address = 0;
  if (walk_read(walk->sp + room, &return_address)) return walk_stop_at_value(walk, SAMPLER_END_UNREADABLE);
  if (return_address && !walk_find_mapping(walk, return_address - 1))
    return walk_stop_unmapped(walk, SAMPLER_END_NO_UNWIND_INFO);
  walk->pc = return_address;
  walk->sp += room + 8;
  walk->exact = walk->registers_known = 0;
  return 0;
}

CP_INLINE int walk_without_cfi(struct user_walk *walk) {
  uint64_t code = 0, room = 0;
  if (walk_read(walk->pc, &code) == 0 && cp_return_room(code, &room)) return walk_returning_step(walk, room);
  return walk_frame_pointer_step(walk);
}

/* In the few instructions of clone3 that come before a root: the thread that called it, or a new one at its start. */
CP_INLINE int walk_root_gap_step(struct user_walk *walk) {
  uint64_t return_address = 0;
  if (walk_read(walk->sp, &return_address) || !return_address || !walk_find_mapping(walk, return_address - 1))
    return walk_stop(walk, SAMPLER_END_COMPLETE);
  walk->pc = return_address;
  walk->sp += 8;
  walk->exact = walk->registers_known = 0;
  return 0;
}

CP_INLINE int walk_gap_step(struct user_walk *walk, const struct walk_row *row) {
  int leads_to_root = walk->exact && row->next_distance && row->next_distance < WALK_ROOT_GAP &&
                      walk_rule_is(row->next_rule, CP_CFA_STOP);
  return leads_to_root ? walk_root_gap_step(walk) : walk_without_cfi(walk);
}

CP_INLINE int walk_rule_step(struct user_walk *walk, const cp_rule *rule, struct walk_memory *memory) {
  cp_frame frame = {.pc = walk->pc, .sp = walk->sp, .fp = walk->fp, .lr = 0, .registers = 0, .valid = 0, .exact = walk->exact};
  if (walk->registers_known) {
    frame.registers = walk->registers;
    frame.valid = (1ull << SAMPLER_REGISTERS) - 1;
  }
  enum cp_status status = cp_step_inline(&walk_machine, rule, &frame, walk_read_word, memory);
  if (rule->is_eh_return && walk->depth <= WALK_EH_RETURN_DEPTH) walk->through_eh_return = 1;
  if (status == CP_STOPPED) return walk_stop(walk, SAMPLER_END_COMPLETE);
  if (status == CP_NO_PROGRESS) return walk_stop_at_value(walk, SAMPLER_END_NO_PROGRESS);
  if (status == CP_READ_FAILED) return walk_stop_at_value(walk, SAMPLER_END_UNREADABLE);
  if (status == CP_NEEDS_REGISTERS || status == CP_NEEDS_CFI) return walk_ask(walk, SAMPLER_END_BAD_UNWIND_INFO);
  if (status != CP_OK) return walk_stop(walk, SAMPLER_END_BAD_UNWIND_INFO);
  walk->pc = frame.pc;
  walk->sp = frame.sp;
  walk->fp = frame.fp;
  walk->exact = frame.exact;
  walk->registers_known = 0;
  return 0;
}

/* In sigreturn the pc is behind the trampoline's last instruction, where its FDE has ended; what begins there may also
 * be a function's own first byte. */
CP_INLINE int walk_is_behind_trampoline(const struct user_walk *walk, const struct sampler_module *module, uint64_t offset,
                                        const struct walk_row *row) {
  struct walk_row before = {0, 0, 0, 0};
  if (!walk->exact || !row->starts_here) return 0;
  return walk_find_row(module, offset - 1, &before) && walk_rule_is(before.rule, CP_CFA_SIGNAL);
}

/* 1: the walk is over. */
CP_INLINE int walk_record_frame(struct user_walk *walk, uint64_t *frames) {
  if (walk->depth >= walk->max_depth) return walk_stop(walk, SAMPLER_END_MAX_DEPTH);
  frames[walk->depth & (SAMPLER_MAX_DEPTH - 1)] = walk->pc;
  walk->hash = walk_mix(walk->hash, walk->pc);
  walk->depth++;
  return 0;
}

/* Records the current frame; 1: the walk is over. */
CP_INLINE int walk_enter_frame(struct user_walk *walk, uint64_t *frames) {
  if (walk->depth && walk->pc == 0) return walk_stop_at_value(walk, SAMPLER_END_COMPLETE);
  int is_mapped = walk_find_mapping(walk, walk->pc - !walk->exact);
  if (!is_mapped && walk->depth && walk->pc < WALK_NULL_PAGE) return walk_stop_at_value(walk, SAMPLER_END_COMPLETE);
  if (!is_mapped && walk->depth) return walk_stop_unmapped(walk, SAMPLER_END_NO_MAPPING);
  if (walk_record_frame(walk, frames)) return 1;
  return is_mapped ? 0 : walk_stop_unmapped(walk, SAMPLER_END_NO_MAPPING);
}

/* Where a function is being left: its own frame, then its caller by the return address on top of the stack, whatever the
 * tables say of that instruction. 1: the walk is over. */
CP_INLINE int walk_leave(struct user_walk *walk, uint64_t *frames) {
  return walk_record_frame(walk, frames) || walk_returning_step(walk, 0);
}

/* Goes on through callers whose rules are known and plain, as most are, and decides nothing: what is out of the ordinary
 * is left to walk_advance(), which begins at the frame where this stopped. */
CP_INLINE void walk_known_callers(struct user_walk *walk, uint64_t *frames, struct walk_memory *memory) {
  uint64_t pc = walk->pc, sp = walk->sp, fp = walk->fp, hash = walk->hash;
  uint32_t depth = walk->depth;
  if (walk->exact || !walk->owner) return;
  for (int i = 0; i < WALK_KNOWN_RUN; i++) {
    const struct walk_known *caller = walk_known_place(memory, pc);
    if (caller->pc != pc || caller->owner != walk->owner || !caller->is_plain || depth >= walk->max_depth) break;
    uint64_t cfa = (caller->rule.cfa_kind == CP_CFA_SP ? sp : fp) + (uint64_t)(int64_t)caller->rule.offset;
    uint64_t return_address = 0, saved = fp;
    if (cfa <= sp || walk_read_near(memory, cfa - 8, &return_address)) break;
    if (caller->rule.fp_kind == CP_FP_AT_CFA && walk_read_near(memory, cfa + (uint64_t)(int64_t)caller->rule.fp_offset, &saved)) break;
    frames[depth++ & (SAMPLER_MAX_DEPTH - 1)] = pc;
    hash = walk_mix(hash, pc);
    pc = return_address;
    sp = cfa;
    fp = saved;
  }
  walk->pc = pc;
  walk->sp = sp;
  walk->fp = fp;
  walk->hash = hash;
  walk->depth = depth;
}

CP_INLINE void walk_keep_known(const struct user_walk *walk, const cp_rule *rule, struct walk_known *place) {
  if (walk->exact || !walk->owner || walk->found_is_learned) return;
  int is_plain = (rule->cfa_kind == CP_CFA_SP || rule->cfa_kind == CP_CFA_FP) && rule->ra_kind == CP_RA_BELOW_CFA &&
                 (rule->fp_kind == CP_FP_SAME || rule->fp_kind == CP_FP_AT_CFA) && !rule->is_eh_return;
  place->pc = walk->pc;
  place->owner = walk->owner;
  place->rule = *rule;
  place->is_plain = is_plain;
}

/* Records the current frame and goes on to its caller. 1: the walk is over, walk->end says why. */
CP_INLINE int walk_advance(struct user_walk *walk, uint64_t *frames, struct walk_memory *memory) {
  walk_known_callers(walk, frames, memory);
  struct walk_known *place = walk_known_place(memory, walk->pc);
  if (!walk->exact && walk->owner && place->pc == walk->pc && place->owner == walk->owner)
    return walk_record_frame(walk, frames) || walk_rule_step(walk, &place->rule, memory);
  if (walk_enter_frame(walk, frames)) return 1;
  if (walk->found.flags & SAMPLER_MAPPING_UNSURE) return walk_ask(walk, SAMPLER_END_NO_MAPPING);
  if (!walk->found.module) return walk_without_cfi(walk);
  const struct sampler_module *module = walk_module(walk->found.module);
  if (!module) return walk_stop(walk, SAMPLER_END_NO_MAPPING);
  if (module->state == SAMPLER_MODULE_UNKNOWN) {
    walk_want_module(walk, walk->found.module);
    return walk_ask(walk, SAMPLER_END_NO_UNWIND_INFO);
  }
  if (module->state != SAMPLER_MODULE_READY) return walk_without_cfi(walk);

  struct walk_row row = {0, 0, 0, 0};
  uint64_t offset = walk->pc - !walk->exact - walk->found.bias;
  int has_row = walk_find_row(module, offset, &row);
  if (has_row && walk_is_behind_trampoline(walk, module, offset, &row)) return walk_ask(walk, SAMPLER_END_BAD_UNWIND_INFO);
  const cp_rule *rule = has_row ? walk_rule(row.rule) : 0;
  if (!rule || rule->cfa_kind == CP_CFA_NONE) return walk_gap_step(walk, &row);
  walk_keep_known(walk, rule, place);
  return walk_rule_step(walk, rule, memory);
}

#endif
