#include "format/text/text.h"

namespace cprof::format {

const FormatInfo& text_format() {
  static const FormatInfo info = {.name = "text",
                                  .title = "readable stacks, as perf script prints them",
                                  .extensions = {".txt"},
                                  .sniff = sniff_text,
                                  .read = read_text,
                                  .open_source = nullptr,
                                  .write = write_text};
  return info;
}

}  // namespace cprof::format
