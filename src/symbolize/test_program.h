// For tests: compiles tiny programs in a directory of its own. Tests skip where there is no compiler.
#pragma once

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "object/elf_file.h"

namespace cprof::symbolize {

class TestDirectory {
 public:
  TestDirectory() {
    char pattern[] = "/tmp/cprof-symbolize-XXXXXX";
    path_ = mkdtemp(pattern);
  }
  ~TestDirectory() { run("rm -rf " + path_); }

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  // In the directory; true: it went well.
  bool shell(const std::string& command) const { return run("cd " + path_ + " && " + command); }

  std::shared_ptr<object::ElfFile> open(const std::string& name) const {
    auto file = object::ElfFile::open(path(name));
    return file ? *file : nullptr;
  }

  static bool has(const std::string& program) { return run("command -v " + program); }

 private:
  static bool run(const std::string& command) { return system(("{ " + command + "; } >/dev/null 2>&1").c_str()) == 0; }
  std::string path_;
};

inline const object::Symbol* symbol_named(const std::vector<object::Symbol>& symbols, std::string_view name) {
  for (const object::Symbol& symbol : symbols) {
    if (symbol.name == name) return &symbol;
  }
  return nullptr;
}

}  // namespace cprof::symbolize
