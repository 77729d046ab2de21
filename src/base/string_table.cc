#include "base/string_table.h"

#include <cstring>

namespace cprof {
namespace {

constexpr size_t kChunkBytes = 64 * 1024;
constexpr size_t kFirstSlots = 16;

uint32_t tag_of(const TextHash& hash) { return static_cast<uint32_t>(hash.a); }

}  // namespace

StringTable::StringTable() { intern(""); }

StringId StringTable::intern(std::string_view text) {
  if ((texts_.size() + 1) * 8 > slots_.size() * 5) grow();
  const uint32_t tag = tag_of(hasher_(text));
  const size_t mask = slots_.size() - 1;
  size_t at = tag & mask;
  for (; slots_[at].id.valid(); at = (at + 1) & mask)
    if (slots_[at].tag == tag && texts_[slots_[at].id.index()] == text) return slots_[at].id;
  StringId id(texts_.size());
  texts_.push_back(store(text));
  slots_[at] = {tag, id};
  return id;
}

void StringTable::grow() {
  std::vector<Slot> larger(slots_.empty() ? kFirstSlots : slots_.size() * 2);
  const size_t mask = larger.size() - 1;
  for (const Slot& slot : slots_) {
    if (!slot.id.valid()) continue;
    size_t at = slot.tag & mask;
    while (larger[at].id.valid()) at = (at + 1) & mask;
    larger[at] = slot;
  }
  slots_ = std::move(larger);
}

std::string_view StringTable::store(std::string_view text) {
  if (text.size() > chunk_left_) {
    size_t size = std::max(kChunkBytes, text.size());
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    chunk_next_ = chunks_.back().get();
    chunk_left_ = size;
  }
  if (!text.empty()) memcpy(chunk_next_, text.data(), text.size());
  std::string_view stored(chunk_next_, text.size());
  chunk_next_ += text.size();
  chunk_left_ -= text.size();
  return stored;
}

}  // namespace cprof
