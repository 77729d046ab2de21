// The two kinds of line of perf script's text: a sample's header and a frame. Pure; used by the reader and the sniffing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cprof::format {

// "comm pid/tid [cpu] sec.usec: period event:"; pid, cpu, period, comm and the ids may be missing, and further columns may
// stand behind the cpu. Without the time the ids
// and the event must be there. Some tools print the only frame behind the event, on the same line.
struct TextHeader {
  std::string_view comm;
  int32_t pid = -1, tid = -1;   // -1: not given
  uint32_t cpu = 0;
  uint64_t time_ns = 0;
  int64_t period = 0;           // 0: not given
  std::string_view event;       // "" when not given
  std::string_view rest;        // what follows the event: a tracepoint's fields, a frame, nothing
};
std::optional<TextHeader> parse_header(std::string_view line);

// "\t  addr name+0xoff (dso)", "\t  addr name (inlined)", "\t  addr name"; with -F +dsoff, "(dso+0xoff)".
struct TextFrame {
  uint64_t address = 0;
  bool has_address = true;
  uint64_t offset = 0;          // in the function, when given
  std::string_view name;        // without its +0x offset
  std::string_view module;      // "" when not given
  bool is_inlined = false;
  bool has_offset = false;
  bool has_file_offset = false;
  uint64_t file_offset = 0;     // in the module's file, when given
};
std::optional<TextFrame> parse_frame(std::string_view line);
// A frame that was printed without its address (-F sym,dso): " name (dso)", " name". Any indented words are one, so the
// caller must know that a frame is due.
std::optional<TextFrame> parse_bare_frame(std::string_view line);
// What -F +srcline prints below a frame, "  file.c:12", "  file.c:12 (discriminator 2)"; file "" when it is not known
// ("  ??:0", "  libc.so.6[1f4a0]", "  read+17").
struct TextSource {
  std::string_view file;
  uint32_t line = 0;
};
std::optional<TextSource> parse_source_line(std::string_view line);
// Whether a line that parse_frame() takes is a header whose comm happens to be hexadecimal ("ab 12/12 1.0: x:").
bool is_header_of_hex_comm(const TextFrame& frame);
// The frame at the end of what follows the event, "1000 f+0x4 (/b)"; of a branch, "jmp 1000 f (/b) => 2000 g (/b)", where
// it comes from.
std::optional<TextFrame> parse_trailing_frame(std::string_view rest);

}  // namespace cprof::format
