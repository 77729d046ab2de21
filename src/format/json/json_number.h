// The numbers of JSON, exactly: what stands in the file as text becomes an integer, a decimal scaled to an integer
// (milliseconds to nanoseconds without a double between) or a double. Used by the JSON readers; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cprof::format {

// literal * 10^decimals as a whole number, rounded to the nearest, halves away from zero: ("1.5", 6) is 1500000. Nothing
// when it is no number or does not fit.
std::optional<int64_t> scaled_number(std::string_view literal, unsigned decimals);
// A whole number; "3.0" and "3e2" are, "3.5" is not.
std::optional<int64_t> whole_number(std::string_view literal);
std::optional<double> real_number(std::string_view literal);

}  // namespace cprof::format
