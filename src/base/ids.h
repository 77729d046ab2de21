// Strong integer ids: a FrameId cannot be passed where a ThreadId is meant.
#pragma once

#include <cstdint>
#include <functional>

namespace cprof {

template <typename Tag>
struct Id {
  uint32_t value = kNone;

  static constexpr uint32_t kNone = 0xffffffff;
  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}
  constexpr explicit Id(size_t v) : value(static_cast<uint32_t>(v)) {}
  constexpr bool valid() const { return value != kNone; }
  constexpr size_t index() const { return value; }
  constexpr auto operator<=>(const Id&) const = default;
};

}  // namespace cprof

template <typename Tag>
struct std::hash<cprof::Id<Tag>> {
  size_t operator()(cprof::Id<Tag> id) const noexcept { return id.value * 0x9e3779b97f4a7c15ull >> 13; }
};
