/* Settings of the sampler's programs, and the maps that only they have. Part of sampler.bpf.c. */
#ifndef CPROF_SAMPLER_STATE_BPF_H
#define CPROF_SAMPLER_STATE_BPF_H

#include "collect/bpf/kernel_access.bpf.h"
#include "collect/bpf/maps.bpf.h"
#include "collect/bpf/sampler_abi.h"

const volatile struct sampler_settings settings SEC(".rodata.settings") = {};

HASH_OF(tasks, SAMPLER_MAX_TASKS, uint32_t, struct sampler_task);
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
