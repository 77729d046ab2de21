// What the user calls functions: "[FILE:]NAME", both with * and ?. NAME is compared with the whole demangled name, with it
// without parameters and template arguments, and with the symbol as it is. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cprof::uprobe {

struct FunctionPattern {
  std::string text;  // as given
  std::string file;  // "": the program, or what it uses when the program has no such function
  std::string name;

  // The first single colon ends FILE: those of "a::b" come in pairs.
  static Result<FunctionPattern> parse(std::string_view text);
  bool has_wildcard() const { return name.find_first_of("*?") != name.npos; }
  // By the whole path, by its last part, or by that without ".so" and what follows it.
  bool names_file(std::string_view path) const;
};

bool matches_glob(std::string_view glob, std::string_view text);

}  // namespace cprof::uprobe
