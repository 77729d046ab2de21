/* What user_walk.h keeps from frame to frame, and from sample to sample: a window on the stack, and callers that are known.
 * The includer defines before:
 *
 *   static int walk_read(uint64_t address, uint64_t *value);           0: read
 *   static int walk_read_some(uint64_t address, uint64_t *words, uint32_t bytes);   1 to WALK_WINDOW_BYTES
 */
#ifndef CPROF_WALK_MEMORY_H
#define CPROF_WALK_MEMORY_H

#include <stdint.h>

#include "unwind/core/unwind_step.h"

#define WALK_KNOWN_BITS 9
#define WALK_WINDOW_BYTES 256
#define WALK_WINDOW_BELOW 64              /* of it below the address asked for: saved registers */
#define WALK_PAGE 4096

/* What the walk calls from several places. A BPF program makes these global functions, which the verifier looks at once
 * each, with pointers that may be null as far as it knows. */
#ifndef WALK_FUNCTION
#define WALK_FUNCTION CP_INLINE
#endif

/* A return address whose rule was found before: code that runs often is called from few places, and a search for each of
 * them is much of what a frame costs. */
struct walk_known {
  uint64_t pc, owner;
  cp_rule rule;
  uint64_t is_plain;                      /* walk_known_callers() may go by it */
};

/* What else a walk has at hand. The window holds a piece of the stack: a read costs about as much whether it is of a word
 * or of what several frames need. Its includer empties it before each walk. */
struct walk_memory {
  struct walk_known known[1 << WALK_KNOWN_BITS];
  uint64_t window_at;
  uint64_t window_bytes;
  uint64_t window[WALK_WINDOW_BYTES / 8];
};

CP_INLINE struct walk_known *walk_known_place(struct walk_memory *memory, uint64_t pc) {
  return &memory->known[(pc * 0x9fb21c651e98df25ull) >> (64 - WALK_KNOWN_BITS)];
}

/* The window stays in the page of the address, so that it fails only where the word itself cannot be read. */
WALK_FUNCTION int walk_fill_window(struct walk_memory *memory, uint64_t address) {
  if (!memory) return 1;
  uint64_t page = address & ~(uint64_t)(WALK_PAGE - 1), at = address - WALK_WINDOW_BELOW;
  if (at < page || at > address) at = page;
  uint64_t bytes = page + WALK_PAGE - at;
  if (bytes > WALK_WINDOW_BYTES) bytes = WALK_WINDOW_BYTES;
  memory->window_bytes = 0;
  if (bytes == 0 || walk_read_some(at, memory->window, (uint32_t)bytes)) return 1;
  memory->window_at = at;
  memory->window_bytes = bytes;
  return 0;
}

/* 0: read. Only what is aligned. */
CP_INLINE int walk_read_near(struct walk_memory *memory, uint64_t address, uint64_t *value) {
  if (address % 8) return 1;
  uint64_t offset = address - memory->window_at;
  if (offset >= memory->window_bytes) {
    if (walk_fill_window(memory, address)) return 1;
    offset = address - memory->window_at;
  }
  *value = memory->window[offset / 8 & (WALK_WINDOW_BYTES / 8 - 1)];
  return 0;
}

/* What the steps of a walk read by. */
CP_INLINE int walk_read_word(void *memory, uint64_t address, uint64_t *value) {
  return walk_read_near((struct walk_memory *)memory, address, value) && walk_read(address, value);
}

#endif
