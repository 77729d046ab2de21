// The system calls of perf events behind a small interface, so that tests can be the kernel: one without a counter, one
// that refuses to map, one that runs out of descriptors. Used by this folder only.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>

namespace cprof::collect {

class PerfApi {
 public:
  virtual ~PerfApi() = default;
  // Each gives its result, or the negative errno.
  virtual int open(const perf_event_attr& attr, int32_t pid, int cpu, int group, unsigned long flags) = 0;  // group: -1 none
  virtual int map(int fd, size_t bytes, void** address) = 0;
  virtual void unmap(void* address, size_t bytes) = 0;
  // Records that the event could not write, of PERF_FORMAT_LOST; 0 when the kernel does not count them.
  virtual uint64_t lost(int fd) = 0;
  virtual int control(int fd, unsigned long request, unsigned long argument) = 0;
};

PerfApi& kernel_perf_api();

}  // namespace cprof::collect
