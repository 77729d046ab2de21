#include "format/perfdata/perfdata.h"

#include <string_view>

#include "format/perfdata/layout.h"
#include "format/perfdata/perfdata_source.h"

namespace cprof::format {
namespace {

bool sniff(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.starts_with(perfdata::kMagic) || text.starts_with(perfdata::kMagicSwapped);
}

std::unique_ptr<event::EventSource> open_source(Input input, const ReadOptions& options) {
  return std::make_unique<perfdata::PerfDataSource>(std::move(input), options);
}

}  // namespace

const FormatInfo& perfdata_format() {
  static const FormatInfo format{.name = "perfdata",
                                 .title = "perf.data of Linux perf",
                                 .extensions = {".perf.data", "perf.data", ".perfdata"},
                                 .sniff = sniff,
                                 .read = nullptr,
                                 .open_source = open_source,
                                 .write = nullptr};
  return format;
}

}  // namespace cprof::format
