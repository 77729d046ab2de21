// What a profile of the file holds until its unit and kind are known, packed: values and events take no more memory than
// their text took. Used by the speedscope reader and its builder; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "format/speedscope/speedscope_values.h"
#include "profile/profile.h"

namespace cprof::format {

// Numbers one after the other, small ones in few bytes, in blocks that never move. Read in order by a Cursor, as often as
// was added.
class PackedNumbers {
 public:
  void add(uint64_t number);

  class Cursor {
   public:
    explicit Cursor(const PackedNumbers& numbers) : numbers_(numbers) {}
    uint64_t next();

   private:
    uint8_t byte() {
      const uint8_t byte = (*numbers_.blocks_[at_ / kBlockBytes])[at_ % kBlockBytes];
      ++at_;
      return byte;
    }

    const PackedNumbers& numbers_;
    size_t at_ = 0;
  };

 private:
  static constexpr size_t kBlockBytes = 64 * 1024;
  using Block = std::array<uint8_t, kBlockBytes>;
  void put(uint8_t byte);

  std::vector<std::unique_ptr<Block>> blocks_;
  size_t bytes_ = 0;
};

struct SpeedscopeEvent {
  SpeedscopeValue at;
  uint32_t frame = 0;
  bool is_open = false;
};

// A column of one kind, and who reads it.
template <typename Item>
class SpeedscopeColumn {
 public:
  void add(const Item& item);
  size_t size() const { return size_; }

  class Cursor {
   public:
    explicit Cursor(const SpeedscopeColumn& column) : numbers_(column.numbers_) {}
    Item next();

   private:
    PackedNumbers::Cursor numbers_;
  };

 private:
  PackedNumbers numbers_;
  size_t size_ = 0;
};

extern template class SpeedscopeColumn<SpeedscopeValue>;
extern template class SpeedscopeColumn<SpeedscopeEvent>;
extern template class SpeedscopeColumn<profile::CallSiteId>;

}  // namespace cprof::format
