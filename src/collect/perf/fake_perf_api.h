// A kernel for tests: hands out descriptors and rings in memory, refuses what a test says it refuses, and lets the test
// put records into a CPU's ring.
#pragma once

#include <linux/perf_event.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "collect/perf/perf_api.h"

namespace cprof::collect {

class FakePerfApi final : public PerfApi {
 public:
  struct Opened {
    perf_event_attr attr;
    int32_t pid;
    int cpu;
    int fd;
    int group = -1;
  };

  // Each gives an errno, or 0 to allow.
  std::function<int(const perf_event_attr&, int32_t pid, int cpu)> refuse_open;
  std::function<int(size_t pages)> refuse_map;
  std::map<int, uint64_t> lost_of_fd;

  int open(const perf_event_attr& attr, int32_t pid, int cpu, int group, unsigned long) override {
    if (int error = refuse_open ? refuse_open(attr, pid, cpu) : 0) return -error;
    int fd = eventfd(0, EFD_CLOEXEC);
    opened.push_back({attr, pid, cpu, fd, group});
    return fd;
  }
  int map(int fd, size_t bytes, void** address) override {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    if (int error = refuse_map ? refuse_map(bytes / page - 1) : 0) return -error;
    void* memory = aligned_alloc(page, bytes);
    memory_.emplace_back(memory, &free);
    memset(memory, 0, bytes);
    auto* control = static_cast<perf_event_mmap_page*>(memory);
    control->data_offset = page;
    control->data_size = bytes - page;
    for (const Opened& event : opened)
      if (event.fd == fd) ring_of_cpu_[event.cpu] = control;
    *address = memory;
    return 0;
  }
  void unmap(void*, size_t) override { unmapped++; }
  uint64_t lost(int fd) override { return lost_of_fd[fd]; }
  int control(int fd, unsigned long request, unsigned long argument) override {
    if (request == PERF_EVENT_IOC_ID) *reinterpret_cast<uint64_t*>(argument) = static_cast<uint64_t>(fd);
    if (request == PERF_EVENT_IOC_ENABLE) enabled.push_back(fd);
    return 0;
  }

  perf_event_mmap_page* ring(int cpu) { return ring_of_cpu_.at(cpu); }
  void put(int cpu, std::span<const std::byte> record) {
    perf_event_mmap_page* control = ring(cpu);
    auto* data = reinterpret_cast<std::byte*>(control) + control->data_offset;
    for (size_t i = 0; i < record.size(); i++) data[(control->data_head + i) % control->data_size] = record[i];
    control->data_head += record.size();
  }
  // The last opened sampling event of a CPU: its id is its descriptor.
  uint64_t sampler_id(int cpu) const {
    uint64_t id = 0;
    for (const Opened& event : opened)
      if (event.cpu == cpu && event.attr.config != PERF_COUNT_SW_DUMMY) id = static_cast<uint64_t>(event.fd);
    return id;
  }

  std::vector<Opened> opened;
  std::vector<int> enabled;
  int unmapped = 0;

 private:
  std::map<int, perf_event_mmap_page*> ring_of_cpu_;
  std::vector<std::unique_ptr<void, decltype(&free)>> memory_;  // tests look into rings after they are unmapped
};

}  // namespace cprof::collect
