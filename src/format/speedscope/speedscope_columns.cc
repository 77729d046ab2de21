#include "format/speedscope/speedscope_columns.h"

#include <algorithm>
#include <iterator>

namespace cprof::format {
namespace {

// A value's decimals are one of few; with its digits they make one number, or two where the digits fill all bits.
constexpr uint8_t kDecimals[] = {0, 3, 9};
constexpr uint64_t kIsLong = 3;
constexpr unsigned kCodeBits = 2;

uint64_t zigzag(int64_t value) { return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63); }
int64_t unzigzag(uint64_t number) { return static_cast<int64_t>(number >> 1 ^ (~(number & 1) + 1)); }

void put(PackedNumbers& numbers, const SpeedscopeValue& value) {
  const auto code = static_cast<uint64_t>(std::ranges::find(kDecimals, value.decimals) - std::begin(kDecimals));
  const uint64_t digits = zigzag(value.value);
  if (digits >> (64 - kCodeBits) == 0) return numbers.add(digits << kCodeBits | code);
  numbers.add(code << kCodeBits | kIsLong);
  numbers.add(digits);
}

void take(PackedNumbers::Cursor& numbers, SpeedscopeValue& value) {
  const uint64_t number = numbers.next();
  const bool is_long = (number & kIsLong) == kIsLong;
  const uint64_t code = is_long ? number >> kCodeBits : number & kIsLong;
  value = {unzigzag(is_long ? numbers.next() : number >> kCodeBits), kDecimals[code]};
}

void put(PackedNumbers& numbers, const SpeedscopeEvent& event) {
  put(numbers, event.at);
  numbers.add(uint64_t{event.frame} << 1 | event.is_open);
}

void take(PackedNumbers::Cursor& numbers, SpeedscopeEvent& event) {
  take(numbers, event.at);
  const uint64_t number = numbers.next();
  event.frame = static_cast<uint32_t>(number >> 1);
  event.is_open = number & 1;
}

void put(PackedNumbers& numbers, profile::CallSiteId site) { numbers.add(static_cast<uint32_t>(site.value + 1)); }
void take(PackedNumbers::Cursor& numbers, profile::CallSiteId& site) {
  site = profile::CallSiteId(static_cast<uint32_t>(numbers.next()) - 1);
}

}  // namespace

void PackedNumbers::put(uint8_t byte) {
  if (bytes_ / kBlockBytes == blocks_.size()) blocks_.push_back(std::make_unique_for_overwrite<Block>());
  (*blocks_.back())[bytes_++ % kBlockBytes] = byte;
}

void PackedNumbers::add(uint64_t number) {
  for (; number > 0x7f; number >>= 7) put(static_cast<uint8_t>(number | 0x80));
  put(static_cast<uint8_t>(number));
}

uint64_t PackedNumbers::Cursor::next() {
  uint64_t number = 0;
  for (unsigned shift = 0;; shift += 7) {
    const uint64_t part = byte();
    number |= (part & 0x7f) << shift;
    if (part < 0x80) return number;
  }
}

template <typename Item>
void SpeedscopeColumn<Item>::add(const Item& item) {
  put(numbers_, item);
  ++size_;
}

template <typename Item>
Item SpeedscopeColumn<Item>::Cursor::next() {
  Item item;
  take(numbers_, item);
  return item;
}

template class SpeedscopeColumn<SpeedscopeValue>;
template class SpeedscopeColumn<SpeedscopeEvent>;
template class SpeedscopeColumn<profile::CallSiteId>;

}  // namespace cprof::format
