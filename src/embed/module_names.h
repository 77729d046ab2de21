// Function names of the program's own files, from their symbol tables; C++ names by the runtime's own demangler. Lines, inlined
// functions and separate debug files are for `cprof symbolize`: the mappings and build-ids in the output let it. One thread.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "base/diagnostics.h"
#include "embed/module_tracker.h"
#include "symbolize/symbol_index.h"

namespace cprof::embed {

class ModuleNames {
 public:
  explicit ModuleNames(const ModuleTracker& modules) : modules_(modules) {}

  struct Name {
    std::string text, system;
    uint64_t start = 0;   // of the function, in the file
  };
  // Null: no symbol holds the address. Valid as long as this object.
  const Name* find(uint32_t file, uint64_t svma, Diagnostics& diagnostics);

 private:
  struct File {
    std::unique_ptr<symbolize::SymbolIndex> index;
    std::unordered_map<uint64_t, Name> names;   // by the function's start
  };
  const ModuleTracker& modules_;
  std::unordered_map<uint32_t, File> files_;
};

}  // namespace cprof::embed
