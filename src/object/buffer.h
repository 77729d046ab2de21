// Bytes on the heap that are not zeroed first and grow in place where the kernel can (realloc), for sections of hundreds
// of megabytes. Private to object.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <span>
#include <utility>

namespace cprof::object {

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { free(data_); }

  // False when memory is short; the content is then as before.
  [[nodiscard]] bool resize(size_t size) {
    void* data = realloc(data_, size ? size : 1);
    if (!data) return false;
    data_ = static_cast<std::byte*>(data);
    size_ = size;
    return true;
  }
  std::byte* data() { return data_; }
  size_t size() const { return size_; }
  std::span<std::byte> span() { return {data_, size_}; }
  std::span<const std::byte> span() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace cprof::object
