/* The maps of BPF programs that walk user stacks: the tables they walk by, what user space has told of processes, the rings
 * that their records go to. User space's side is walk_maps.h. Part of the BPF programs; the includer defines before:
 *
 *   const volatile struct {...} settings;     with max_depth, ring_bytes, user_stacks and kernel_stacks, as in sampler_abi.h
 */
#ifndef CPROF_WALK_MAPS_BPF_H
#define CPROF_WALK_MAPS_BPF_H

#include "collect/bpf/kernel_access.bpf.h"
#include "collect/bpf/maps.bpf.h"
#include "collect/bpf/sampler_abi.h"
#include "unwind/core/unwind_rows.h"

struct sampler_control control SEC(".data.control") = {};

struct chunk {
  uint32_t words[SAMPLER_CHUNK_WORDS];
};
struct store_chunk {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(uint32_t));
  __uint(value_size, sizeof(struct chunk));
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, SAMPLER_MAX_CHUNKS);
  __type(key, uint32_t);
  __array(values, struct store_chunk);
} store SEC(".maps");

struct cpu_ring {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);  /* user space chooses */
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, SAMPLER_MAX_CPUS);
  __type(key, uint32_t);
  __array(values, struct cpu_ring);
} rings SEC(".maps");

ARRAY_OF(rules, SAMPLER_MAX_RULES, cp_rule);
ARRAY_OF(modules, SAMPLER_MAX_MODULES, struct sampler_module);
ARRAY_OF(mappings, SAMPLER_MAX_MAPPINGS, struct sampler_mapping);
ARRAY_OF(sent, SAMPLER_SENT_SLOTS, uint64_t);
HASH_OF(processes, SAMPLER_MAX_PROCESSES, uint32_t, struct sampler_process);
HASH_OF(execs, SAMPLER_MAX_PROCESSES, uint32_t, uint64_t);
HASH_OF(files, SAMPLER_MAX_MODULES, struct sampler_file_key, uint32_t);

#endif
