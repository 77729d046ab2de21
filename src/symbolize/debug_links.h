// The files that debug info continues in: .dwo files of split units and dwz's shared file (.gnu_debugaltlink). Called by
// DwarfModule. A file whose id does not match is never used; what is missing is counted, one line a kind.
#pragma once

#include <memory>

#include "symbolize/dwarf_file.h"

namespace cprof::symbolize {

// Null: not found.
std::unique_ptr<DwarfFile> open_split_file(const Unit& skeleton, const DwarfFile& main, Diagnostics& diagnostics);

// Null: the file has no link, or it leads nowhere.
std::unique_ptr<DwarfFile> open_supplementary_file(object::ElfFile& file, Diagnostics& diagnostics);

}  // namespace cprof::symbolize
