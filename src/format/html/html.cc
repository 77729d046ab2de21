#include "format/html/html.h"

#include <algorithm>

#include "page/html_file.h"

namespace cprof::format {
namespace {

bool sniff_html(std::span<const std::byte> head) {
  std::string text(reinterpret_cast<const char*>(head.data()), std::min<size_t>(head.size(), 15));
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text == "<!doctype html>";
}

}  // namespace

const FormatInfo& html_format() {
  static const FormatInfo info = {
      .name = "html", .title = "page (HTML)", .extensions = {".html"}, .sniff = sniff_html, .write = write_html};
  return info;
}

Result<void> write_html(const profile::Profile& profile, OutputFile& out, const WriteOptions& options) {
  const std::string& source = profile.run.source;
  const page::PageProfile pages[] = {{&profile, source.empty() ? "recording" : source}};
  const page::PayloadOptions payload{.with_source = options.with_source, .source_roots = options.source_roots};
  return page::write_html_file(pages, payload, [&](std::string_view text) { return out.write(text); });
}

}  // namespace cprof::format
