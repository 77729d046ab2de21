/* Settings, control block and maps of the BPF programs. Part of sampler.bpf.c. */
#ifndef CPROF_SAMPLER_STATE_BPF_H
#define CPROF_SAMPLER_STATE_BPF_H

#include "collect/bpf/kernel_access.bpf.h"
#include "collect/bpf/maps.bpf.h"
#include "collect/bpf/sampler_abi.h"
#include "unwind/core/unwind_rows.h"

const volatile struct sampler_settings settings SEC(".rodata.settings") = {};
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
HASH_OF(tasks, SAMPLER_MAX_TASKS, uint32_t, struct sampler_task);
HASH_OF(files, SAMPLER_MAX_MODULES, struct sampler_file_key, uint32_t);
HASH_OF(counts_0, SAMPLER_MAX_COUNTS, struct sampler_count_key, struct sampler_count);
HASH_OF(counts_1, SAMPLER_MAX_COUNTS, struct sampler_count_key, struct sampler_count);
HASH_OF(waits, SAMPLER_MAX_TASKS, uint32_t, struct sampler_wait);

struct {
  __uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, uint32_t);
} cgroup SEC(".maps");

#endif
