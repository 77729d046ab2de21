// Reading a whole BPF hash map: in batches, as the kernel keeps it. Used by the objects that sum up in the kernel.
#pragma once

#include <bpf/bpf.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "base/result.h"

namespace cprof::collect {

// Every pair of a hash map, or takes them all out: in batches, as the kernel keeps them. Before 5.6 there are none, and
// nothing here runs before 5.10. On an error keys and values hold what was read before it, which is taken out then.
template <typename Key, typename Value>
Result<void> read_pairs(int fd, bool take, std::vector<Key>& keys, std::vector<Value>& values) {
  keys.clear();
  values.clear();
  uint64_t position = 0, *before = nullptr;
  uint32_t batch = 1024;
  for (;;) {
    const size_t old = values.size();
    keys.resize(old + batch);
    values.resize(old + batch);
    uint32_t count = batch;
    bpf_map_batch_opts options{};
    options.sz = sizeof(options);
    const int error = take ? bpf_map_lookup_and_delete_batch(fd, before, &position, &keys[old], &values[old], &count, &options)
                           : bpf_map_lookup_batch(fd, before, &position, &keys[old], &values[old], &count, &options);
    const bool is_too_small = error == -ENOSPC;  // a bucket that holds more than the batch: nothing of it was given
    const size_t given = is_too_small || (error != 0 && error != -ENOENT) ? 0 : count;
    keys.resize(old + given);
    values.resize(old + given);
    if (error == -ENOENT) return {};
    if (is_too_small && batch < (1u << 20)) {
      batch *= 2;
      continue;
    }
    if (error != 0) return fail_errno("bpf: reading a map", -error);
    before = &position;
  }
}

}  // namespace cprof::collect
