#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "format/callgrind/callgrind.h"
#include "format/chrome/chrome.h"
#include "format/cpuprofile/cpuprofile.h"
#include "format/firefox/firefox.h"
#include "format/cprof/cprof.h"
#include "format/folded/folded.h"
#include "format/format.h"
#include "format/gperftools/gperftools.h"
#include "format/gzip.h"
#include "format/html/html.h"
#include "format/perfdata/perfdata.h"
#include "format/pftrace/pftrace.h"
#include "format/pprof/pprof.h"
#include "format/speedscope/speedscope.h"
#include "format/svg/svg.h"
#include "format/text/text.h"
#include "format/text_encoding.h"

namespace cprof::format {
namespace {

constexpr size_t kHeadBytes = 64 * 1024;

// The list. A format is added here and nowhere else.
std::vector<FormatInfo> make_list() {
  return {cprof_format(), folded_format(), text_format(), pprof_format(), pftrace_format(), perfdata_format(),
          gperftools_format(), speedscope_format(), cpuprofile_format(), callgrind_format(),
          firefox_format(), chrome_format(), svg_format(), html_format()};
}

// What is opened by mistake, or too early: files that hold no profile, or hold one in a wrapper that is not unpacked here.
struct Stranger {
  std::string_view magic;
  std::string_view words;
  size_t offset = 0;
};
using namespace std::string_view_literals;
constexpr Stranger kStrangers[] = {
    {"\x28\xb5\x2f\xfd"sv, "compressed by zstd, which is not unpacked here: zstd -d"},
    {"\xfd""7zXZ\0"sv, "compressed by xz, which is not unpacked here: xz -d"},
    {"BZh"sv, "compressed by bzip2, which is not unpacked here: bzip2 -d"},
    {"\x04\x22\x4d\x18"sv, "compressed by lz4, which is not unpacked here: lz4 -d"},
    {"PK\x03\x04"sv, "a zip archive, which is not unpacked here: unzip"},
    {"ustar"sv, "a tar archive, which is not unpacked here: tar -x", 257},
    {"\x7f""ELF"sv, "a program or a library, not a profile; cprof record -- PROGRAM makes one"},
    {"SQLite format 3\0"sv, "an SQLite database, but no recording of cprof's"},
};

// "" where nothing is known of it.
std::string_view what_else_it_is(std::span<const std::byte> head) {
  const std::string_view bytes(reinterpret_cast<const char*>(head.data()), head.size());
  for (const Stranger& stranger : kStrangers)
    if (bytes.size() > stranger.offset && bytes.substr(stranger.offset).starts_with(stranger.magic)) return stranger.words;
  if (!is_gzip(head)) return "";
  const std::vector<std::byte> unpacked = unpack_head(head, kHeadBytes);
  auto is_it = [&](const FormatInfo& info) { return info.open_source && info.sniff && info.sniff(unpacked); };
  return std::ranges::any_of(all_formats(), is_it) ? "a perf.data file in gzip, which is not unpacked here: gzip -d" : "";
}

}  // namespace

std::span<const FormatInfo> all_formats() {
  static const std::vector<FormatInfo> list = make_list();
  return list;
}

const FormatInfo* find_by_name(std::string_view name) {
  for (const FormatInfo& info : all_formats())
    if (info.name == name) return &info;
  return nullptr;
}

const FormatInfo* find_by_path(std::string_view path) {
  std::string_view base = path.substr(path.rfind('/') + 1);
  const FormatInfo* found = nullptr;
  size_t longest = 0;
  for (const FormatInfo& info : all_formats()) {
    for (std::string_view extension : info.extensions) {
      if (extension.size() <= longest || !base.ends_with(extension)) continue;
      found = &info;
      longest = extension.size();
    }
  }
  return found;
}

const FormatInfo* find_by_content(std::span<const std::byte> head) {
  const bool is_packed = is_gzip(head);
  std::vector<std::byte> unpacked;
  if (is_packed) {
    unpacked = unpack_head(head, kHeadBytes);
    head = unpacked;
  }
  std::string text;  // what carries a byte order mark is text
  if (encoding_of(head) != TextEncoding::kPlain) {
    text = head_as_utf8(head);
    head = std::as_bytes(std::span(text));
  }
  for (const FormatInfo& info : all_formats()) {
    if (is_packed && info.open_source) continue;  // reads its file as it is
    if (info.sniff && info.sniff(head)) return &info;
  }
  return nullptr;
}

// An empty input has no content to go by: its name decides who says that nothing is in it.
Result<const FormatInfo*> detect(const Input& input) {
  const FormatInfo* named = find_by_path(input.name);
  if (input.head.empty()) {
    if (named && named->read) return named;
    return fail(fmt::format("{}: the file is empty", input.name));
  }
  if (const FormatInfo* found = find_by_content(input.head)) {
    if (found->read || found->open_source) return found;
    return fail(fmt::format("{}: this is a {} file, which cannot be read yet", input.name, found->title));
  }
  if (const std::string_view words = what_else_it_is(input.head); !words.empty()) return fail(fmt::format("{}: {}", input.name, words));
  if (!named) return fail(fmt::format("{}: not a format that cprof knows; --input-format names it", input.name));
  if (named->read) return named;  // its reader says where it is wrong
  return fail(fmt::format("{}: the name says {}, the content does not", input.name, named->title));
}

}  // namespace cprof::format
