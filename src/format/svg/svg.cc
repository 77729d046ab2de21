#include "format/svg/svg.h"

namespace cprof::format {
namespace {

// Pictures are written only; to know one is to say so in plain words.
bool sniff_svg(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), std::min<size_t>(head.size(), 4096));
  if (!text.starts_with("<?xml") && !text.starts_with("<svg")) return false;
  return text.find("<svg") != std::string_view::npos;
}

}  // namespace

const FormatInfo& svg_format() {
  static const FormatInfo info = {
      .name = "svg", .title = "picture (SVG)", .extensions = {".svg"}, .sniff = sniff_svg, .write = write_svg};
  return info;
}

}  // namespace cprof::format
