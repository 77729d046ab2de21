// The functions of a file that patterns name, with the places where each is entered and left. A function and its clones
// (.constprop, .isra, .part) are one; .cold parts are no functions. A name that stands for a choice made at run time (IFUNC) is
// none either. Used by the verb, on one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "collect/bpf/uprobe_abi.h"
#include "object/elf_file.h"
#include "symbolize/symbolizer.h"
#include "uprobe/function_pattern.h"

namespace cprof::uprobe {

struct ProbedFunction {
  std::string name;                 // demangled
  std::string system_name;          // as in the symbol table, without marks of clones
  uint32_t file = 0;                // the caller's number of its file
  std::vector<uprobe_site> entries, exits;  // without the function's number
  std::string why_untimed;          // not "": its calls can be counted, not timed
};

class FunctionFinder {
 public:
  struct Options {
    symbolize::DemangleStyle style = symbolize::DemangleStyle::kFull;
    bool finds_exits = true;
    size_t most_functions = 0;      // more are an error
  };
  explicit FunctionFinder(const Options& options);

  // What the patterns match in this file; debug may be null. Gives how many each pattern matched.
  Result<std::vector<size_t>> add(uint32_t number, object::ElfFile& file, object::ElfFile* debug,
                                  std::span<const FunctionPattern> patterns);

  std::vector<ProbedFunction>& functions() { return functions_; }
  const std::vector<ProbedFunction>& functions() const { return functions_; }
  const Diagnostics& diagnostics() const { return diagnostics_; }
  const std::vector<std::string>& chosen_at_run_time() const { return ifuncs_; }  // names that matched and are IFUNCs

 private:
  struct FileSymbols;
  struct Family;
  Result<FileSymbols> read_symbols(object::ElfFile& file, object::ElfFile* debug);
  bool matches(const FunctionPattern& pattern, std::string_view system_name);
  Result<void> add_family(uint32_t number, object::ElfFile& file, const FileSymbols& symbols, const Family& family);
  void find_exits(object::ElfFile& file, const FileSymbols& symbols, const Family& family, ProbedFunction& function);

  Options options_;
  symbolize::Demangler demangler_, full_, brief_;
  std::vector<ProbedFunction> functions_;
  std::vector<std::string> ifuncs_;
  Diagnostics diagnostics_;
};

// "f.constprop.0" is "f"; so is "f@@V2".
std::string_view stem_of(std::string_view symbol);
bool is_cold_part(std::string_view symbol);

}  // namespace cprof::uprobe
