// The codes of enumerations as a file tells them: name and number, so that a file can be read whatever numbers the model
// has by then. Used by the writer and the reader. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "profile/profile.h"

namespace cprof::store {

struct CodeType {
  std::string_view type;                    // as in cprof_enum
  size_t count;                             // codes are 0 to count - 1
  std::string_view (*name)(size_t code);
};

enum class CodeKind : uint8_t { kStackEnd, kWaitClass, kFrameKind, kCount };
std::span<const CodeType> all_code_types();  // in the order of CodeKind

}  // namespace cprof::store
