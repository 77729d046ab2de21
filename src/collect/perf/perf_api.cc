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
  int open(const perf_event_attr& attr, int32_t pid, int cpu, unsigned long flags) override {
    long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);
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
    struct {
      uint64_t value, lost;
    } counts{};
    return read(fd, &counts, sizeof(counts)) == sizeof(counts) ? counts.lost : 0;
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
