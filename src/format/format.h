// What a file format is: one object that knows its own name, its sniffing, its reader and its writer. registry.cc lists
// them all. A reader gives a Profile; a source of raw events (perf.data) gives an EventSource for the pipeline.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/result.h"
#include "event/event.h"
#include "profile/profile.h"

namespace cprof::format {

enum class Weight : uint8_t { kSamples, kWall, kOffCpu };
enum class FoldedStyle : uint8_t { kPlain, kExtended };
enum class GroupBy : uint8_t { kProcess, kThread, kContainer, kCgroup };

struct WriteOptions {
  Weight weight = Weight::kSamples;
  std::string metric;               // empty: the default metric
  FoldedStyle folded_style = FoldedStyle::kPlain;
  GroupBy by = GroupBy::kProcess;
  bool with_source = false;         // pages: put the lines of source that the profile points to into the file,
  std::vector<std::string> source_roots;  // looked for here first
  Diagnostics* losses = nullptr;    // where a writer counts what its format cannot hold; may be null
};

struct ReadOptions {
  uint64_t max_input_bytes = uint64_t{4} << 30;  // unpacked
  uint64_t max_ratio = 200;                      // unpacked : packed
};

// An input opened for reading: a file, or a pipe read as it comes. format/input.h opens it and reads it.
struct Input {
  Fd fd;
  std::string name;                   // for messages, and the profile's scope
  std::vector<std::byte> head;        // the first bytes (up to 64 KiB), already taken from fd when it is a pipe
  bool seekable = false;              // fd can be read again from its start; head is a copy then
};

// A file of a recording that goes on: what was committed is there whole, however the program ends. It is made by the
// first commit and stays; its last form is written by FormatInfo::write.
class GrowingFile {
 public:
  virtual ~GrowingFile() = default;
  // Puts what is new. losses: all so far, in place of the profile's own. is_renumbered: rows have other numbers than at
  // the last commit, so everything is put anew.
  virtual Result<void> commit(const profile::Profile& so_far, const Diagnostics& losses, bool is_renumbered) = 0;
};

struct FormatInfo {
  std::string_view name;              // "folded": for --format
  std::string_view title;             // "FlameGraph folded stacks"
  std::vector<std::string_view> extensions;  // ".folded", longest match wins
  // Whether these first bytes, unpacked, are this format. Two formats that both answer is a failing test.
  bool (*sniff)(std::span<const std::byte> head) = nullptr;
  Result<profile::Profile> (*read)(Input input, const ReadOptions& options) = nullptr;
  std::unique_ptr<event::EventSource> (*open_source)(Input input, const ReadOptions& options) = nullptr;
  Result<void> (*write)(const profile::Profile& profile, OutputFile& out, const WriteOptions& options) = nullptr;
  bool is_untimed = false;            // by --weight samples it writes sums, for which samples need no times
  std::unique_ptr<GrowingFile> (*grow)(std::string path) = nullptr;
  bool has_system_names = false;      // functions have the linker's name beside their own
};

// The explicit list (registry.cc).
std::span<const FormatInfo> all_formats();
const FormatInfo* find_by_name(std::string_view name);
const FormatInfo* find_by_path(std::string_view path);         // by extension, else by the whole file name
// By the first bytes; gzip is looked into (for formats with a reader of their own, which unpack by themselves).
const FormatInfo* find_by_content(std::span<const std::byte> head);
// What to read an input with: by content, else one line that says why not (empty, unknown, what its name suggests).
Result<const FormatInfo*> detect(const Input& input);

}  // namespace cprof::format
