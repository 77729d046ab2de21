/* The search for the row of an address in the store of unwind tables, for user_walk.h. The includer defines before:
 *
 *   static const uint32_t *walk_chunk(uint32_t chunk);                 of the store; null: not there
 */
#ifndef CPROF_WALK_ROWS_H
#define CPROF_WALK_ROWS_H

#include "collect/bpf/sampler_abi.h"
#include "collect/bpf/walk_memory.h"

struct walk_row {
  uint32_t rule;
  uint32_t starts_here;                   /* the row begins at this very address */
  uint32_t next_rule;                     /* of the row behind it, and how far that is; 0: none in this page */
  uint32_t next_distance;
};

/* 0: no row. */
WALK_FUNCTION int walk_find_row(const struct sampler_module *module, uint64_t offset, struct walk_row *row) {
  if (!module || !row) return 0;
  uint64_t page = (offset - module->base) >> CP_PAGE_BITS;
  if (offset < module->base || page >= module->page_count) return 0;
  uint32_t at = module->pages_at + (uint32_t)page;
  const uint32_t *words = walk_chunk(at >> SAMPLER_CHUNK_BITS);
  if (!words) return 0;
  uint32_t first = words[at & (SAMPLER_CHUNK_WORDS - 1)], end = words[(at + 1) & (SAMPLER_CHUNK_WORDS - 1)];
  if (first >= end) return 0;
  words = walk_chunk(first >> SAMPLER_CHUNK_BITS);
  if (!words) return 0;

  uint32_t low = first, high = end - 1, pc_low = (uint32_t)offset & 0xfff;
  uint32_t key = CP_MAKE_ROW(pc_low, 0xfffff);
  for (int step = 0; step < SAMPLER_SEARCH_STEPS; step++) {
    if (low >= high) break;
    uint32_t middle = low + (high - low + 1) / 2;
    if (words[middle & (SAMPLER_CHUNK_WORDS - 1)] <= key) low = middle;
    else high = middle - 1;
  }
  uint32_t word = words[low & (SAMPLER_CHUNK_WORDS - 1)];
  row->rule = CP_ROW_RULE(word);
  row->starts_here = CP_ROW_PC(word) == pc_low;
  row->next_distance = 0;
  if (low + 1 < end) {
    word = words[(low + 1) & (SAMPLER_CHUNK_WORDS - 1)];
    row->next_rule = CP_ROW_RULE(word);
    row->next_distance = CP_ROW_PC(word) - pc_low;
  }
  return 1;
}

#endif
