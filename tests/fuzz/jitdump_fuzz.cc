// Any bytes as a jitdump that grows: what it finds lies where it says.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "symbolize/jitdump.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cprof::symbolize::JitDump dump([&](uint64_t offset, std::span<std::byte> into) -> size_t {
    if (offset >= size) return 0;
    const size_t count = std::min<size_t>(into.size(), size - offset);
    std::ranges::copy(std::as_bytes(std::span(data + offset, count)), into.begin());
    return count;
  });
  (void)dump.read_until(size / 2);
  (void)dump.read_until(size);
  for (uint64_t address : {uint64_t{0}, uint64_t{0x1000}, uint64_t{0x7f0000001010}, UINT64_MAX}) {
    auto entry = dump.find(address);
    if (entry && (address < entry->start || address - entry->start >= entry->size + (entry->size == 0))) abort();
  }
  return 0;
}
