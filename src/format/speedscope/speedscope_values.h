// Values and units of the format. A profile's unit may stand behind its values, so they are kept as they were written
// until it is known. Used by the reader and its parts; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cprof::format {

// A decimal number: value / 10^decimals.
struct SpeedscopeValue {
  int64_t value = 0;
  uint8_t decimals = 0;
};
std::optional<SpeedscopeValue> parse_speedscope_value(std::string_view literal);

struct SpeedscopeUnit {
  std::string_view name;    // in the file
  std::string_view metric;  // what it is called here when the file does not tell
  std::string_view unit;
  int64_t factor;  // nanoseconds of one, else 1
  bool is_time;
};
// Of the six that the format has; "none" for any other.
const SpeedscopeUnit& speedscope_unit(std::string_view name);
bool is_speedscope_unit(std::string_view name);
// The name in a file of one of our units.
std::string_view speedscope_unit_of(std::string_view unit);

// In the unit, halves away from zero; nothing when it does not fit. Adds to rounded when digits were lost.
std::optional<int64_t> in_unit(SpeedscopeValue value, const SpeedscopeUnit& unit, uint64_t& rounded);

}  // namespace cprof::format
