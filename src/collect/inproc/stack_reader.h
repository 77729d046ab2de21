// Reads a thread's own stack from its signal handler without ever faulting: words inside a range that is known to be mapped are
// read directly, others through process_vm_readv, one page at a time and a few pages a sample. No libc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cprof::inproc {

struct StackRange {
  uint64_t low = 0, high = 0;
  bool holds(uint64_t address) const { return address >= low && address < high; }
};

// Copies of pages outside the known ranges, valid for one sample.
struct PageCopies {
  static constexpr uint32_t kCount = 4;
  uint64_t address[kCount] = {};
  uint32_t used = 0;
  unsigned char bytes[kCount][4096] = {};
};

class StackReader {
 public:
  // ranges: the thread's stack, its alternate stack, a fiber's; an empty one is skipped. process_id: for process_vm_readv.
  StackReader(const StackRange* ranges, uint32_t count, PageCopies* copies, int process_id)
      : ranges_(ranges), count_(count), copies_(copies), process_id_(process_id) {
    copies_->used = 0;
  }

  // Direct reads lie between here and the end of the range that holds sp: below sp nothing is known to be mapped (the main
  // stack grows on demand), but for the words that a leaf function may use there.
  void set_stack_pointer(uint64_t sp) {
    current_ = {};
    for (uint32_t n = 0; n < count_; n++)
      if (ranges_[n].holds(sp)) current_ = {sp < ranges_[n].low + kRedZone ? ranges_[n].low : sp - kRedZone, ranges_[n].high};
  }

  // 0, or 1: cannot be read.
  int read(uint64_t address, uint64_t* value) {
    if (address >= current_.low && address < current_.high && current_.high - address >= sizeof *value) {
      __builtin_memcpy(value, reinterpret_cast<const void*>(address), sizeof *value);
      return 0;
    }
    return read_elsewhere(address, value);
  }

  static int read_word(void* self, uint64_t address, uint64_t* value) {
    return static_cast<StackReader*>(self)->read(address, value);
  }

 private:
  static constexpr uint64_t kRedZone = 128;

  int read_elsewhere(uint64_t address, uint64_t* value);
  const unsigned char* page(uint64_t address);

  const StackRange* ranges_;
  uint32_t count_;
  PageCopies* copies_;
  int process_id_;
  StackRange current_;
};

}  // namespace cprof::inproc
