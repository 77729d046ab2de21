// Any bytes as a perf map: what it finds lies where it says.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbolize/symbolizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto map = cprof::symbolize::PerfMap::parse({reinterpret_cast<const char*>(data), size});
  for (uint64_t address : {uint64_t{0}, uint64_t{0x1000}, uint64_t{0x7f0000001010}, UINT64_MAX}) {
    auto entry = map.find(address);
    if (entry && (address < entry->start || address - entry->start >= entry->size + (entry->size == 0))) abort();
  }
  return 0;
}
