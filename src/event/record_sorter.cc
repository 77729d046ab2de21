#include "event/record_sorter.h"

#include <algorithm>
#include <cstring>

namespace cprof::event {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

bool earlier(const RecordSorter::Item& a, const RecordSorter::Item& b) { return a.time_ns < b.time_ns; }

}  // namespace

void RecordSorter::push(uint64_t time_ns, std::span<const std::byte> record, uint32_t source) {
  items_.push_back({time_ns, record, source, kNoChunk});
  latest_seen_ = std::max(latest_seen_, time_ns);
}

void RecordSorter::push_copy(uint64_t time_ns, std::span<const std::byte> record) {
  size_t room = (record.size() + 7) / 8 * 8;
  uint32_t index = chunk_with_room(room);
  Chunk& chunk = chunks_[index];
  std::byte* at = chunk.bytes.get() + chunk.used;
  if (!record.empty()) memcpy(at, record.data(), record.size());
  chunk.used += room;
  chunk.live++;
  items_.push_back({time_ns, {at, record.size()}, 0, index});
  latest_seen_ = std::max(latest_seen_, time_ns);
}

size_t RecordSorter::held_bytes() const {
  return (chunks_.size() - free_chunks_.size()) * kChunkBytes + (items_.size() - first_) * sizeof(Item);
}

uint32_t RecordSorter::chunk_with_room(size_t bytes) {
  if (current_chunk_ != kNoChunk) {
    Chunk& chunk = chunks_[current_chunk_];
    if (chunk.live == 0) chunk.used = 0;
    if (chunk.size - chunk.used >= bytes) return current_chunk_;
    if (chunk.live == 0) free_chunks_.push_back(current_chunk_);
  }
  if (!free_chunks_.empty() && chunks_[free_chunks_.back()].size >= bytes) {
    current_chunk_ = free_chunks_.back();
    free_chunks_.pop_back();
    chunks_[current_chunk_].used = 0;
    return current_chunk_;
  }
  size_t size = std::max(kChunkBytes, bytes);
  current_chunk_ = static_cast<uint32_t>(chunks_.size());
  chunks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), 0, size, 0});
  return current_chunk_;
}

uint64_t RecordSorter::finish_round() {
  uint64_t safe = latest_last_round_;
  latest_last_round_ = latest_seen_;
  return safe;
}

void RecordSorter::sort() {
  if (sorted_ == items_.size()) return;
  auto first = items_.begin() + static_cast<ptrdiff_t>(first_), fresh = items_.begin() + static_cast<ptrdiff_t>(sorted_);
  if (!std::is_sorted(fresh, items_.end(), earlier)) std::stable_sort(fresh, items_.end(), earlier);
  if (fresh != first && earlier(*fresh, *(fresh - 1))) std::inplace_merge(first, fresh, items_.end(), earlier);
  sorted_ = items_.size();
}

void RecordSorter::drop_delivered() {
  // Moving the rest down each time would cost a pass per delivery when much is held.
  if (first_ < items_.size() - first_) return;
  items_.erase(items_.begin(), items_.begin() + static_cast<ptrdiff_t>(first_));
  sorted_ -= first_;
  first_ = 0;
}

void RecordSorter::note_delivery(const Item& item) {
  // Time 0 is a record without a time, made up by a tool: it belongs wherever it stands.
  if (item.time_ns != 0 && item.time_ns < last_delivered_) late_++;
  last_delivered_ = std::max(last_delivered_, item.time_ns);
}

void RecordSorter::release(const Item& item) {
  if (item.chunk == kNoChunk) return;
  Chunk& chunk = chunks_[item.chunk];
  if (--chunk.live == 0 && item.chunk != current_chunk_) free_chunks_.push_back(item.chunk);
}

}  // namespace cprof::event
