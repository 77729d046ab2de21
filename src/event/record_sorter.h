// Puts records into time order. Records of one CPU come in order, those of several do not; a round is a pass over all
// of them, and what is older than everything the round before has seen can no longer be preceded by anything. The live
// collector pushes views of its rings and names the bound itself; the perf.data reader pushes copies and ends rounds.
// Equal times keep the order in which they were pushed. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

namespace cprof::event {

class RecordSorter {
 public:
  struct Item {
    uint64_t time_ns = 0;
    std::span<const std::byte> record;
    uint32_t source = 0;  // the pusher's own number: a ring
    uint32_t chunk = kNoChunk;
  };

  explicit RecordSorter(size_t max_bytes = SIZE_MAX) : max_bytes_(max_bytes) {}

  // The bytes stay the caller's and must live until delivered.
  void push(uint64_t time_ns, std::span<const std::byte> record, uint32_t source);
  void push_copy(uint64_t time_ns, std::span<const std::byte> record);

  // Ends a round; gives the time up to which delivery is now safe: the latest time of the round before.
  uint64_t finish_round();

  // Calls take(item) for every held record with time <= until_ns, in order; an error stops it, the rest stays held.
  template <typename Take>
  Result<void> deliver(uint64_t until_ns, Take&& take) {
    sort();
    while (first_ < items_.size() && items_[first_].time_ns <= until_ns) TRY(deliver_first(take));
    drop_delivered();
    return {};
  }

  // True when more than max_bytes are held: deliver_half() then gives up the older half, sorted as far as seen.
  bool over_limit() const { return held_bytes() > max_bytes_; }
  template <typename Take>
  Result<void> deliver_half(Take&& take) {
    sort();
    size_t until = first_ + (items_.size() - first_ + 1) / 2;
    while (first_ < until) TRY(deliver_first(take));
    drop_delivered();
    return {};
  }

  std::span<const Item> held() const { return std::span(items_).subspan(first_); }
  // Memory that the held records take, chunks that one record keeps alive included.
  size_t held_bytes() const;
  // Delivered although something later had been delivered before.
  uint64_t late() const { return late_; }

 private:
  static constexpr uint32_t kNoChunk = 0xffffffff;
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    size_t used = 0, size = 0, live = 0;
  };

  template <typename Take>
  Result<void> deliver_first(Take& take) {
    const Item item = items_[first_];
    note_delivery(item);
    Result<void> taken = take(item);
    first_++;
    release(item);
    return taken;
  }
  void sort();
  void drop_delivered();
  void note_delivery(const Item& item);
  void release(const Item& item);
  uint32_t chunk_with_room(size_t bytes);

  std::vector<Item> items_;  // [first_, sorted_) in order, the rest as pushed
  size_t first_ = 0, sorted_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<uint32_t> free_chunks_;
  uint32_t current_chunk_ = kNoChunk;
  size_t max_bytes_;
  uint64_t latest_seen_ = 0, latest_last_round_ = 0, last_delivered_ = 0, late_ = 0;
};

}  // namespace cprof::event
