// jit-PID.dump, what JIT compilers write for `perf inject --jit`: names, lines and moves of generated code (the kernel's
// tools/perf/Documentation/jitdump-specification.txt). Read piece by piece as it grows; the code bytes in it are passed
// over. Names are asked for by address and time: code comes, is moved away, and other code is put in its place. Used by
// pipeline.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/string_table.h"
#include "symbolize/interval_map.h"

namespace cprof::symbolize {

class JitDump {
 public:
  // Fills what it can; fewer bytes where the file ends.
  using Read = std::function<size_t(uint64_t offset, std::span<std::byte> into)>;
  explicit JitDump(Read read) : read_(std::move(read)) {}

  // Takes the whole records between where it stopped and `size`. An error: it is no jitdump, or broken from there on; what was
  // read before stays.
  Result<void> read_until(uint64_t size);

  struct Entry {
    std::string_view name, file;  // file "": not known
    uint32_t line = 0;
    uint64_t start = 0, size = 0;
    uint32_t code = 0;  // tells it from other code that lay there
  };
  static constexpr uint64_t kLast = UINT64_MAX;
  // What lies there after the last record, or lay there at a time (CLOCK_MONOTONIC). Views live as long as this object.
  std::optional<Entry> find(uint64_t address, uint64_t time_ns = kLast);
  // Whether it depends on the time what lies there.
  bool changes(uint64_t address);
  size_t size() const { return codes_.size(); }

 private:
  struct Code {
    StringId name{};
    uint64_t start = 0, size = 0;
    uint64_t written_at = 0;  // where its lines think it lies
    uint64_t from_ns = 0, until_ns = kLast;
    uint32_t first_line = 0, line_count = 0;
  };
  struct Line {
    uint64_t address = 0;
    uint32_t line = 0;
    StringId file{};
  };

  Result<void> read_header();
  Result<bool> read_record(uint64_t size);
  Result<std::span<const std::byte>> payload(uint64_t bytes);
  Result<void> take_load(uint32_t bytes);
  Result<void> take_move(uint32_t bytes);
  Result<void> take_lines(uint32_t bytes);
  void add(const Code& code);
  void sort();
  std::optional<uint32_t> code_at(uint64_t address, uint64_t time_ns);

  Read read_;
  uint64_t offset_ = 0;
  bool swap_ = false;
  bool has_times_ = true;  // else they are of a clock that nobody else reads
  uint64_t time_ns_ = 0;   // of the record being read
  std::vector<std::byte> buffer_;
  StringTable texts_;
  std::vector<Code> codes_;
  std::vector<Line> lines_;
  std::unordered_map<uint64_t, uint32_t> by_index_;      // the newest code of a code_index
  struct Lines {
    uint32_t first = 0, count = 0;
  };
  std::unordered_map<uint64_t, Lines> lines_to_come_;    // by code address: told before the code
  IntervalMap last_, first_;               // of all code that ever lay at an address
  std::vector<uint32_t> by_start_;         // codes
  std::vector<uint64_t> ends_;             // the highest end of the codes up to each of those
  bool is_sorted_ = true;
};

}  // namespace cprof::symbolize
