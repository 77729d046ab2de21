// Interned strings: each distinct text once, named by a StringId; id 0 is always "". Texts live in large chunks, so
// views stay valid for the table's life. One thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/text_hash.h"

namespace cprof {

using StringId = Id<struct StringTag>;

class StringTable {
 public:
  StringTable();
  StringTable(StringTable&&) noexcept = default;
  StringTable& operator=(StringTable&&) noexcept = default;

  StringId intern(std::string_view text);
  std::string_view operator[](StringId id) const { return texts_[id.index()]; }
  size_t size() const { return texts_.size(); }

 private:
  struct Slot {
    uint32_t tag = 0;  // of the text's hash
    StringId id{};     // invalid: free
  };

  std::string_view store(std::string_view text);
  void grow();

  std::vector<std::unique_ptr<char[]>> chunks_;
  size_t chunk_left_ = 0;
  char* chunk_next_ = nullptr;
  std::vector<std::string_view> texts_;
  TextHasher hasher_;
  std::vector<Slot> slots_;  // linear probing, a power of two
};

}  // namespace cprof
