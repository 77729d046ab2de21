// Any bytes as an ELF file with symbols and debug info: every address gets an answer, in bounded time and memory.
#include <cstdint>

#include "symbolize/symbolizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cprof;
  auto bytes = reinterpret_cast<const std::byte*>(data);
  auto file = object::ElfFile::from_memory({bytes, bytes + size}, "fuzz");
  if (!file) return 0;
  symbolize::Demangler demangler(symbolize::DemangleStyle::kFull);
  symbolize::ModuleSymbols symbols(*file, nullptr, demangler);
  Diagnostics diagnostics;
  for (const object::Section& section : (*file)->sections()) {
    if (!(section.flags & SHF_EXECINSTR)) continue;
    for (uint64_t offset = 0; offset < 4096 && offset < section.size; offset += 7) {
      symbols.find(section.vaddr + offset, diagnostics);
    }
  }
  return 0;
}
