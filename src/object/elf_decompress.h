// An ELF image in memory whose debug sections are plain, for readers of DWARF that do not know every compression (libdw
// 0.188 reads no zstd). Called by symbolize when needs_decompression() says so.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "object/elf_file.h"

namespace cprof::object {

// True when a debug section is compressed in any convention.
bool needs_decompression(const ElfFile& file);

// Section numbers, addresses and names are kept, .zdebug_x becomes .debug_x. Only debug sections, symbol and string
// tables and notes have content; the rest is SHT_NOBITS, and there are no program headers. One section that lies about
// its size, or over 2 GiB in all (less for small files), is an Error.
Result<std::vector<std::byte>> decompressed_image(ElfFile& file);

}  // namespace cprof::object
