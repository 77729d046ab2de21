#include "collect/perf/ring.h"

#include <unistd.h>

#include <cstring>
#include <utility>

namespace cprof::collect {

Result<Ring> Ring::map(PerfApi& api, int fd, size_t pages) {
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  Ring ring;
  ring.mapped_bytes_ = (pages + 1) * page;
  int error = api.map(fd, ring.mapped_bytes_, &ring.mapped_);
  if (error < 0) {
    ring.mapped_ = nullptr;
    return fail_errno("mmap of a ring buffer", -error);
  }
  ring.api_ = &api;
  ring.control_ = static_cast<perf_event_mmap_page*>(ring.mapped_);
  // Kernels before 4.1 leave data_offset 0: the data follows the control page.
  size_t offset = ring.control_->data_offset ? static_cast<size_t>(ring.control_->data_offset) : page;
  ring.data_ = static_cast<const std::byte*>(ring.mapped_) + offset;
  ring.size_ = pages * page;
  ring.wrapped_.reserve(UINT16_MAX + 1);
  ring.tail_ = ring.cursor_ = ring.head_ = ring.control_->data_tail;
  return ring;
}

Ring::Ring(Ring&& other) noexcept { *this = std::move(other); }

Ring& Ring::operator=(Ring&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(mapped_, other.mapped_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(control_, other.control_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(head_, other.head_);
  std::swap(cursor_, other.cursor_);
  std::swap(tail_, other.tail_);
  std::swap(wrapped_, other.wrapped_);
  std::swap(wrapped_at_, other.wrapped_at_);
  std::swap(nonsense_bytes_, other.nonsense_bytes_);
  return *this;
}

Ring::~Ring() {
  if (mapped_) api_->unmap(mapped_, mapped_bytes_);
}

void Ring::look_at_head() {
  // Acquire: the records before the head are read after it.
  head_ = __atomic_load_n(&control_->data_head, __ATOMIC_ACQUIRE);
}

std::optional<std::span<const std::byte>> Ring::next() {
  if (drained()) return std::nullopt;
  size_t offset = static_cast<size_t>(cursor_ & (size_ - 1));
  perf_event_header header;  // records are multiples of 8, so a header never wraps
  memcpy(&header, data_ + offset, sizeof(header));
  if (header.size < sizeof(header) || header.size % 8 != 0 || header.size > head_ - cursor_) {
    nonsense_bytes_ += head_ - cursor_;
    cursor_ = head_;
    return std::nullopt;
  }
  uint64_t start = cursor_;
  cursor_ += header.size;
  if (offset + header.size <= size_) return std::span(data_ + offset, header.size);
  size_t first = size_ - offset;
  wrapped_.resize(header.size);
  memcpy(wrapped_.data(), data_ + offset, first);
  memcpy(wrapped_.data() + first, data_, header.size - first);
  wrapped_at_ = start;
  return std::span<const std::byte>(wrapped_);
}

uint64_t Ring::position_of(const std::byte* record) const {
  if (record == wrapped_.data()) return wrapped_at_;
  uint64_t offset = static_cast<uint64_t>(record - data_);
  return tail_ + ((offset - tail_) & (size_ - 1));
}

void Ring::release(uint64_t up_to) {
  if (up_to == tail_) return;
  tail_ = up_to;
  // Release: our reads are done before the kernel may write here again.
  __atomic_store_n(&control_->data_tail, tail_, __ATOMIC_RELEASE);
}

}  // namespace cprof::collect
