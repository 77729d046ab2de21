/* Declarations of the common kinds of BPF maps. Part of the BPF programs. */
#ifndef CPROF_MAPS_BPF_H
#define CPROF_MAPS_BPF_H

#define HASH_OF(name, entries, type_of_key, type_of_value) \
  struct { \
    __uint(type, BPF_MAP_TYPE_HASH); \
    __uint(max_entries, entries); \
    __type(key, type_of_key); \
    __type(value, type_of_value); \
  } name SEC(".maps")

#define PERCPU_OF(name, entries, type_of_value) \
  struct { \
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); \
    __uint(max_entries, entries); \
    __type(key, uint32_t); \
    __type(value, type_of_value); \
  } name SEC(".maps")

/* User space may map it. */
#define ARRAY_OF(name, entries, type_of_value) \
  struct { \
    __uint(type, BPF_MAP_TYPE_ARRAY); \
    __uint(map_flags, BPF_F_MMAPABLE); \
    __uint(max_entries, entries); \
    __type(key, uint32_t); \
    __type(value, type_of_value); \
  } name SEC(".maps")

#endif
