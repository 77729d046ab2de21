// The file form's header, its attr section and the feature sections at its end. Private to perfdata.
#pragma once

#include <cstdint>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "event/event.h"
#include "format/perfdata/attributes.h"
#include "format/perfdata/build_ids.h"
#include "format/perfdata/byte_source.h"

namespace cprof::format::perfdata {

constexpr size_t kMostEvents = 65536;  // attrs of a file, wherever they stand

struct Section {
  uint64_t offset = 0, size = 0;
};

struct FileHeader {
  std::vector<FileEvent> events;
  Section data;            // within the file
  BuildIds build_ids;
  bool finished = true;    // false: perf was cut off before it wrote the sizes; data goes to the end of the file
};

// info receives what the feature sections tell. Sections outside the file are counted, not fatal, except the attrs and
// the beginning of the data.
Result<FileHeader> read_file_header(ByteSource& source, bool swap, event::SessionInfo& info, Diagnostics& diagnostics);

// One feature's payload, from its section or its record: fills what it tells into info, names into events.
void apply_feature(uint32_t feature, std::span<const std::byte> payload, bool swap, event::SessionInfo& info,
                   std::vector<FileEvent>& events);

}  // namespace cprof::format::perfdata
