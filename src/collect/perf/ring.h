// One CPU's ring buffer, shared with the kernel: read in place, released later. next() goes up to the head that
// look_at_head() saw, so a pass ends; release() gives room back to the kernel once everything before was delivered.
// A record that wraps around the end is copied; at most one such record can be in the ring at a time.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collect/perf/perf_api.h"

namespace cprof::collect {

class Ring {
 public:
  // pages: a power of two. On EPERM and ENOMEM the caller tries fewer.
  static Result<Ring> map(PerfApi& api, int fd, size_t pages);
  Ring(Ring&& other) noexcept;
  Ring& operator=(Ring&& other) noexcept;
  ~Ring();

  void look_at_head();
  // The next record before the seen head; nothing when there is none.
  std::optional<std::span<const std::byte>> next();
  bool drained() const { return cursor_ == head_; }
  // Where a record that next() gave begins.
  uint64_t position_of(const std::byte* record) const;
  uint64_t cursor() const { return cursor_; }
  void release(uint64_t up_to);

  size_t size() const { return size_; }
  // Bytes that had to be skipped because a record's size made no sense.
  uint64_t take_nonsense_bytes() { return std::exchange(nonsense_bytes_, 0); }

 private:
  Ring() = default;

  PerfApi* api_ = nullptr;
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  perf_event_mmap_page* control_ = nullptr;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  uint64_t head_ = 0, cursor_ = 0, tail_ = 0;
  std::vector<std::byte> wrapped_;
  uint64_t wrapped_at_ = 0;
  uint64_t nonsense_bytes_ = 0;
};

}  // namespace cprof::collect
