#include "format/folded/folded.h"

namespace cprof::format {

const FormatInfo& folded_format() {
  static const FormatInfo info = {.name = "folded",
                                  .title = "FlameGraph folded stacks",
                                  .extensions = {".folded", ".collapsed"},
                                  .sniff = sniff_folded,
                                  .read = read_folded,
                                  .open_source = nullptr,
                                  .write = write_folded,
                                  .is_untimed = true};
  return info;
}

}  // namespace cprof::format
