// The files that debug info continues in: .dwo files of split units, packages of them, and dwz's shared file (.gnu_debugaltlink). Called by
// DwarfModule. A file whose id does not match is never used; what is missing is counted, one line a kind.
#pragma once

#include <memory>

#include "symbolize/dwarf_file.h"

namespace cprof::symbolize {

// Object files, which ElfFile itself does not take, read whole. For debug info that needs no relocations.
Result<std::shared_ptr<object::ElfFile>> open_object_file(const std::string& path);

class DwarfPackage;

// From the program's package (null: it has none), else from a .dwo file. Null: not found.
std::unique_ptr<DwarfFile> open_split_file(const Unit& skeleton, const DwarfFile& main, const DwarfPackage* package,
                                           Diagnostics& diagnostics);

// Null: the file has no link, or it leads nowhere.
std::unique_ptr<DwarfFile> open_supplementary_file(object::ElfFile& file, Diagnostics& diagnostics);

}  // namespace cprof::symbolize
