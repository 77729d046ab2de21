#include "collect/perf/perf_api.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace cprof::collect {
namespace {

class KernelPerfApi final : public PerfApi {
 public:
  int open(const perf_event_attr& attr, int32_t pid, int cpu, int group, unsigned long flags) override {
    long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, group, flags | PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : static_cast<int>(fd);
  }
  int map(int fd, size_t bytes, void** address) override {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) return -errno;
    *address = mapped;
    return 0;
  }
  void unmap(void* address, size_t bytes) override { munmap(address, bytes); }
  uint64_t lost(int fd) override {
    // {value, lost}; of the leader of a group {n, {value, id, lost} n times}, itself first.
    uint64_t words[1 + 3 * 64];
    ssize_t size = read(fd, words, sizeof(words));
    if (size == 16) return words[1];
    return size >= 32 ? words[3] : 0;
  }
  int control(int fd, unsigned long request, unsigned long argument) override {
    return ioctl(fd, request, argument) < 0 ? -errno : 0;
  }
};

}  // namespace

PerfApi& kernel_perf_api() {
  static KernelPerfApi api;
  return api;
}

}  // namespace cprof::collect
