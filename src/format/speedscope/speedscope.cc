#include "format/speedscope/speedscope.h"

#include "format/json/json_head.h"

namespace cprof::format {

const FormatInfo& speedscope_format() {
  static const FormatInfo info = {.name = "speedscope",
                                  .title = "speedscope JSON",
                                  .extensions = {".speedscope.json"},
                                  .sniff = sniff_speedscope,
                                  .read = read_speedscope,
                                  .open_source = nullptr,
                                  .write = write_speedscope};
  return info;
}

bool sniff_speedscope(std::span<const std::byte> head) {
  const JsonHead json(head);
  if (json.text("$schema").find("speedscope") != std::string_view::npos) return true;
  if (json.has("profiles.[].startValue") || json.has("profiles.[].endValue")) return true;
  return json.has("profiles") && json.has("shared.frames");
}

}  // namespace cprof::format
