#include "format/speedscope/speedscope_values.h"

#include <algorithm>
#include <iterator>

#include "format/json/json_number.h"

namespace cprof::format {
namespace {

constexpr SpeedscopeUnit kUnits[] = {
    {"none", "weight", "count", 1, false},
    {"bytes", "bytes", "bytes", 1, false},
    {"nanoseconds", "wall", "nanoseconds", 1, true},
    {"microseconds", "wall", "nanoseconds", 1'000, true},
    {"milliseconds", "wall", "nanoseconds", 1'000'000, true},
    {"seconds", "wall", "nanoseconds", 1'000'000'000, true},
};

const SpeedscopeUnit* find_unit(std::string_view name) {
  auto found = std::ranges::find(kUnits, name, &SpeedscopeUnit::name);
  return found == std::end(kUnits) ? nullptr : &*found;
}

}  // namespace

std::optional<SpeedscopeValue> parse_speedscope_value(std::string_view literal) {
  constexpr uint8_t kTried[] = {9, 3, 0};  // as many as fit beside the digits in front of the point
  if (literal.find_first_of(".eE") == literal.npos)
    if (auto value = scaled_number(literal, 0)) return SpeedscopeValue{*value, 0};
  for (uint8_t decimals : kTried)
    if (auto value = scaled_number(literal, decimals)) return SpeedscopeValue{*value, decimals};
  return std::nullopt;
}

const SpeedscopeUnit& speedscope_unit(std::string_view name) {
  const SpeedscopeUnit* found = find_unit(name);
  return found ? *found : kUnits[0];
}

bool is_speedscope_unit(std::string_view name) { return find_unit(name) != nullptr; }

std::string_view speedscope_unit_of(std::string_view unit) { return is_speedscope_unit(unit) ? unit : "none"; }

std::optional<int64_t> in_unit(SpeedscopeValue value, const SpeedscopeUnit& unit, uint64_t& rounded) {
  __int128 result = static_cast<__int128>(value.value) * unit.factor;
  __int128 divisor = 1;
  for (uint8_t i = 0; i < value.decimals; ++i) divisor *= 10;
  const __int128 rest = result % divisor;
  result /= divisor;
  if (rest != 0) ++rounded;
  if (rest * 2 >= divisor) ++result;
  if (rest * 2 <= -divisor) --result;
  if (result < INT64_MIN || result > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(result);
}

}  // namespace cprof::format
