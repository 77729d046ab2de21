#include "format/firefox/firefox.h"

#include "format/firefox/firefox_parser.h"
#include "format/firefox/firefox_to_profile.h"
#include "format/input.h"
#include "format/json/json_head.h"

namespace cprof::format {

const FormatInfo& firefox_format() {
  static const FormatInfo info = {.name = "firefox",
                                  .title = "Firefox Profiler JSON",
                                  .extensions = {".json", ".json.gz", ".firefox.json"},
                                  .sniff = sniff_firefox,
                                  .read = read_firefox,
                                  .open_source = nullptr,
                                  .write = write_firefox};
  return info;
}

bool sniff_firefox(std::span<const std::byte> head) {
  const JsonHead json(head);
  for (std::string_view key : {"meta.preprocessedProfileVersion", "shared.stackTable", "shared.stringArray",
                               "threads.[].stackTable", "threads.[].stringArray", "threads.[].processStartupTime"})
    if (json.has(key)) return true;
  return json.has("meta.interval") && (json.has("meta.stackwalk") || json.has("meta.processType"));
}

Result<profile::Profile> read_firefox(Input input, const ReadOptions& options) {
  profile::ProfileBuilder builder;
  builder.profile().run.source = input.name;
  JsonStream json(TRY(InputStream::open(std::move(input), options)));
  FirefoxFile file = TRY(parse_firefox(json, builder));
  return firefox_to_profile(std::move(file), std::move(builder));
}

}  // namespace cprof::format
