// Names that JIT compilers give to their code, by process: perf maps (/tmp/perf-PID.map) and jitdumps (jit-PID.dump), files
// that grow as code is made. They are found inside the target's root and by its number in its own pid namespace, and kept
// open: after the process's end its root may be gone. Used by the pipeline, on its thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "base/fd.h"
#include "event/event.h"
#include "symbolize/jitdump.h"
#include "symbolize/symbolizer.h"

namespace cprof::pipeline {

class JitNames {
 public:
  // While it lives: a process that runs generated code. To be called for each new piece of such code; true, now and then:
  // it is time to look for a dump, too.
  bool note_code(int32_t pid);
  // A jitdump that the process has mapped, for others to find it.
  struct Dump {
    uint64_t start = 0, end = 0;
    std::string path;
    event::FileId file;
  };
  void note_dump(int32_t pid, const Dump& dump);

  // From now on find() may look again whether files have grown.
  void begin_round() { round_++; }

  struct Name {
    std::string_view name, file;  // file "": not known
    uint32_t line = 0;
    uint64_t start = 0;
    bool is_from_dump = false;
    uint32_t code = 0;  // in a dump: tells it from other code that lay there
  };
  // As it is now, or was at a time. Views live until the next call for the same process.
  std::optional<Name> find(int32_t pid, uint64_t address, uint64_t time_ns = symbolize::JitDump::kLast);
  // Whether the name depends on the time.
  bool changes(int32_t pid, uint64_t address);
  // What of those files could not be used.
  void report(Diagnostics& diagnostics) const;

 private:
  struct FileState {  // tells a file that was written anew in another's place
    uint64_t device = 0, inode = 0, bytes = 0;
    int64_t written_ns = 0;
    bool operator==(const FileState&) const = default;
  };
  struct Known {
    Fd map_file, dump_file;
    std::unique_ptr<symbolize::PerfMap> map;    // null: none
    std::unique_ptr<symbolize::JitDump> dump;   // null: none
    FileState map_state;
    uint64_t dump_round = 0, map_round = 0;
    uint32_t codes = 0;
    std::string dump_error, map_error;          // "" so far
  };
  void read_grown_dump(Known& known);
  static FileState state_of(const Fd& file);
  static void read_grown_map(int32_t pid, Known& known);
  static std::optional<Name> find_in(Known& known, uint64_t address, uint64_t time_ns);

  std::map<int32_t, Known> processes_;
  uint64_t round_ = 1;
  size_t open_files_ = 0;
};

}  // namespace cprof::pipeline
