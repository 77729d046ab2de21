// Which code is loaded where: asks the loader, compiles each file's unwind rows once, and publishes the list that the signal
// handler goes by. Addresses of samples become (file, address in the file) here, by the list that was valid then.
// The collector thread only; the loader's lock is taken here and never in a handler.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/diagnostics.h"
#include "collect/inproc/module_list.h"
#include "object/elf_file.h"
#include "unwind/cfi/module_table.h"

namespace cprof::embed {

struct LoadedFile {
  std::string path, build_id;          // hex
  std::shared_ptr<object::ElfFile> elf;   // null: not readable, or not what is loaded
  std::shared_ptr<const unwind::ModuleTable> table;
  uint64_t start = 0, end = 0, file_offset = 0, bias = 0;  // where its code was first seen
};

struct CodePlace {
  uint32_t file = 0;      // index in files()
  uint64_t svma = 0;
};

class ModuleTracker {
 public:
  ~ModuleTracker();
  // Looks whether anything was loaded or unloaded, or, when code was met that is in no list, made at run time.
  void refresh(bool has_unknown_code);
  std::optional<CodePlace> resolve(uint32_t generation, uint64_t pc) const;
  uint32_t generation() const { return current_ ? current_->list.generation : 0; }

  // Lists before the current one may go: no handler and no sample refers to them.
  void forget_old();
  bool has_old() const { return !old_.empty(); }

  const std::vector<std::unique_ptr<LoadedFile>>& files() const { return files_; }
  uint64_t builds() const { return builds_; }
  uint64_t build_ns() const { return build_ns_; }
  void report(Diagnostics& diagnostics) const;

 private:
  struct Seen;
  struct Generation {
    std::vector<inproc::Module> modules;
    std::vector<uint32_t> files;    // of each module
    inproc::ModuleList list;
  };

  static std::vector<Seen> ask_loader(uint64_t& changes);
  uint32_t file_of(const Seen& seen);
  void open(LoadedFile& file, const Seen& seen);
  void add_made_code(Generation& into);
  void publish(std::unique_ptr<Generation> generation);
  static void show(const inproc::ModuleList& list);

  std::vector<std::unique_ptr<LoadedFile>> files_;
  std::map<std::tuple<std::string, std::string, uint64_t>, uint32_t> by_identity_;   // path, build-id, bias
  std::map<std::pair<std::string, std::string>, uint32_t> by_content_;     // path, build-id: whose table is shared
  std::unique_ptr<Generation> current_;
  std::vector<std::unique_ptr<Generation>> old_;
  uint64_t changes_ = 0, builds_ = 0, build_ns_ = 0, unreadable_ = 0;
  uint32_t last_generation_ = 0;
};

}  // namespace cprof::embed
