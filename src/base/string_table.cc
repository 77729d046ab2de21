#include "base/string_table.h"

#include <cstring>

namespace cprof {
namespace {

constexpr size_t kChunkBytes = 64 * 1024;

}  // namespace

StringTable::StringTable() { intern(""); }

StringId StringTable::intern(std::string_view text) {
  if (auto it = index_.find(text); it != index_.end()) return it->second;
  std::string_view stored = store(text);
  StringId id(texts_.size());
  texts_.push_back(stored);
  index_.emplace(stored, id);
  return id;
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
