// Any bytes as a mangled name: never a crash, never slow, never large.
#include <cstdint>
#include <string_view>

#include "symbolize/symbolizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cprof::symbolize;
  std::string_view name(reinterpret_cast<const char*>(data), size);
  for (DemangleStyle style : {DemangleStyle::kFull, DemangleStyle::kShort}) Demangler(style).demangle(name);
  return 0;
}
