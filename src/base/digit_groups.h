// Whole numbers for people: "12,281". Called by every writer of text and pictures; the same in every locale.
#pragma once

#include <cstdint>
#include <string>

namespace cprof {

std::string grouped(int64_t number);

}  // namespace cprof
