// One thread's captured stacks on their way from its signal handler to the collector: a ring of 64-bit words, one producer (the
// handler) and one consumer. A sample is written in place and becomes visible as a whole; what does not fit is dropped by
// the producer and counted, so neither side ever waits. No libc.
#pragma once

#include <atomic>
#include <cstdint>

namespace cprof::inproc {

// Why a captured stack ends where it does.
enum class WalkEnd : uint8_t {
  kRoot,
  kMaxDepth,
  kNoModule,      // pc in no known code
  kNoRule,        // code without unwind information, and no usable frame pointer
  kBadRule,       // a broken row, or one that only the full interpreter could follow
  kUnreadable,    // outside the stack, and the budget for reads elsewhere is used up
  kNoProgress
};

// Frames are leaf first; bit 63 marks a pc that is an interrupted instruction, not a return address.
inline constexpr uint64_t kExactPc = uint64_t{1} << 63;
inline constexpr uint32_t kMaxFrames = 512;

// The words in front of a sample's frames.
struct SampleHeader {
  uint64_t ticks = 0;
  uint32_t generation = 0;  // of the module list that it was unwound by
  uint16_t frame_count = 0;
  WalkEnd end = WalkEnd::kRoot;
  uint32_t span_ns = 0;     // what it stands for: its period, times the expirations of a timer that came together
  uint32_t track = 0;       // the fiber's; 0: the thread's own

  static constexpr uint64_t kWords = 3;
  uint64_t word(uint64_t index) const {
    if (index == 0) return ticks;
    if (index == 1) return uint64_t{generation} << 32 | uint64_t{frame_count} << 8 | static_cast<uint64_t>(end);
    return uint64_t{span_ns} << 32 | track;
  }
  static SampleHeader from_words(uint64_t first, uint64_t second, uint64_t third) {
    return {first, static_cast<uint32_t>(second >> 32), static_cast<uint16_t>(second >> 8), static_cast<WalkEnd>(second & 0xff),
            static_cast<uint32_t>(third >> 32), static_cast<uint32_t>(third)};
  }
};

class SampleRing {
 public:
  // words: a power of two. The memory stays the caller's.
  void set_memory(std::atomic<uint64_t>* words, uint64_t count) {
    words_ = words;
    mask_ = count - 1;
  }
  bool has_memory() const { return words_ != nullptr; }

  // Producer. room() words may be put() behind the header's place; then commit(), or nothing at all.
  uint64_t room() const {
    const uint64_t used = head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_acquire);
    return mask_ + 1 - used;
  }
  void put(uint64_t index, uint64_t word) {
    words_[(head_.load(std::memory_order_relaxed) + index) & mask_].store(word, std::memory_order_relaxed);
  }
  void commit(uint64_t words) { head_.store(head_.load(std::memory_order_relaxed) + words, std::memory_order_release); }
  void count_loss() { lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  // Consumer.
  uint64_t available() const { return head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_relaxed); }
  uint64_t peek(uint64_t index) const {
    return words_[(tail_.load(std::memory_order_relaxed) + index) & mask_].load(std::memory_order_relaxed);
  }
  void consume(uint64_t words) { tail_.store(tail_.load(std::memory_order_relaxed) + words, std::memory_order_release); }
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }
  uint64_t capacity() const { return mask_ + 1; }

 private:
  std::atomic<uint64_t>* words_ = nullptr;
  uint64_t mask_ = 0;
  std::atomic<uint64_t> head_{0}, tail_{0}, lost_{0};
};

}  // namespace cprof::inproc
