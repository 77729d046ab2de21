#include "format/gperftools/gperftools.h"

#include <fmt/format.h>

#include "format/gperftools/cpu_profile.h"
#include "format/gperftools/legacy_lines.h"
#include "format/gperftools/legacy_text.h"
#include "format/input.h"

namespace cprof::format {

const FormatInfo& gperftools_format() {
  static const FormatInfo info = {.name = "gperftools",
                                  .title = "gperftools CPU or heap profile",
                                  .extensions = {".prof", ".heap", ".growth", ".contention"},
                                  .sniff = sniff_gperftools,
                                  .read = read_gperftools};
  return info;
}

bool sniff_gperftools(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (parse_cpu_header(text)) return true;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!is_before_legacy_header(line)) return is_legacy_header(line);
  }
  return false;
}

Result<profile::Profile> read_gperftools(Input input, const ReadOptions& options) {
  LegacyProfile profile(input.name);
  LegacyStream stream(TRY(InputStream::open(std::move(input), options)));
  if (const auto cpu = parse_cpu_header(TRY(stream.peek()))) {
    TRY(read_cpu_samples(stream, *cpu, profile));
    TRY(cpu->is_java ? read_java_names(stream, profile) : read_legacy_map(stream, profile));
  } else {
    TRY(read_legacy_text(stream, profile));
  }
  if (!profile.has_stacks()) return fail(fmt::format("{}: no samples", stream.name()));
  return profile.take();
}

}  // namespace cprof::format
