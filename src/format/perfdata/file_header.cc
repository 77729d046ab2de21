#include "format/perfdata/file_header.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/perfdata/layout.h"

namespace cprof::format::perfdata {
namespace {

constexpr uint64_t kFewestAttrBytes = 64;  // PERF_ATTR_SIZE_VER0
constexpr uint64_t kMostAttrBytes = 4096;
constexpr uint64_t kMostIds = uint64_t{1} << 22;
constexpr uint64_t kMostFeatureBytes = uint64_t{16} << 20;
constexpr uint32_t kMostArguments = 65536;

Section read_section(ByteReader& in) {
  uint64_t offset = in.u64();
  return {offset, in.u64()};
}

bool inside(const Section& section, uint64_t file_bytes) {
  return section.offset <= file_bytes && section.size <= file_bytes - section.offset;
}

Result<std::vector<std::byte>> read_section_bytes(ByteSource& source, const Section& section) {
  std::vector<std::byte> bytes(static_cast<size_t>(section.size));
  TRY(source.read_at(section.offset, bytes));
  return bytes;
}

// A length and a NUL-padded text.
std::string read_text(ByteReader& in) {
  auto bytes = in.bytes(in.u32());
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::string(text.substr(0, text.find('\0')));
}

void read_command(ByteReader& in, event::SessionInfo& info) {
  uint32_t count = in.u32();
  std::string command;
  for (uint32_t i = 0; i < count && i < kMostArguments && in.ok(); i++) {
    std::string word = read_text(in);
    if (in.ok()) command += (i ? " " : "") + word;
  }
  info.command = std::move(command);
}

// Each event's attr, name and ids; the ids tell whose name it is.
void read_event_names(ByteReader& in, bool swap, std::vector<FileEvent>& events) {
  uint32_t count = in.u32(), attr_bytes = in.u32();
  for (uint32_t i = 0; i < count && in.ok(); i++) {
    perf_event_attr attr = parse_attr(in.bytes(attr_bytes), swap);
    uint32_t id_count = in.u32();
    std::string name = read_text(in);
    uint64_t first_id = id_count ? in.u64() : 0;
    if (id_count) in.skip(uint64_t{id_count - 1} * 8);
    if (!in.ok()) return;
    auto of = std::ranges::find_if(events, [&](const FileEvent& e) {
      return id_count ? std::ranges::find(e.ids, first_id) != e.ids.end()
                      : e.attr.type == attr.type && e.attr.config == attr.config && e.name.empty();
    });
    if (of != events.end()) of->name = std::move(name);
  }
}

void read_clock(ByteReader& in, event::SessionInfo& info) {
  in.skip(8);  // version and clock id
  uint64_t wall_ns = in.u64(), clock_ns = in.u64();
  if (!in.ok() || info.start_ns) return;
  info.start_ns = clock_ns;
  info.start_realtime_ns = wall_ns;
}

Result<std::vector<uint64_t>> read_ids(ByteSource& source, const Section& section, bool swap, uint64_t& ids_left) {
  if (!inside(section, source.size()) || section.size / 8 > ids_left)
    return fail(fmt::format("{}: the ids of an event, {} bytes at {}, lie outside the file", source.name(), section.size, section.offset));
  ids_left -= section.size / 8;
  auto bytes = TRY(read_section_bytes(source, section));
  ByteReader in(bytes, swap);
  std::vector<uint64_t> ids(bytes.size() / 8);
  for (uint64_t& id : ids) id = in.u64();
  return ids;
}

Result<std::vector<FileEvent>> read_events(ByteSource& source, const Section& attrs, uint64_t entry_bytes, bool swap) {
  bool sane = entry_bytes >= kFewestAttrBytes + 16 && entry_bytes <= kMostAttrBytes;
  if (!sane) return fail(fmt::format("{}: an attr of {} bytes, which cannot be", source.name(), entry_bytes));
  if (!inside(attrs, source.size()))
    return fail(fmt::format("{}: the attr section, {} bytes at {}, lies outside the file of {} bytes", source.name(), attrs.size,
                            attrs.offset, source.size()));
  uint64_t count = attrs.size / entry_bytes, ids_left = kMostIds;
  if (count > kMostEvents) return fail(fmt::format("{}: {} events, more than the limit of {}", source.name(), count, kMostEvents));
  auto bytes = TRY(read_section_bytes(source, attrs));
  std::vector<FileEvent> events;
  for (uint64_t i = 0; i < count; i++) {
    auto entry = std::span<const std::byte>(bytes).subspan(static_cast<size_t>(i * entry_bytes), static_cast<size_t>(entry_bytes));
    ByteReader tail(entry.subspan(static_cast<size_t>(entry_bytes) - 16), swap);
    FileEvent event{.attr = parse_attr(entry.first(static_cast<size_t>(entry_bytes) - 16), swap), .ids = {}, .name = {}};
    event.ids = TRY(read_ids(source, read_section(tail), swap, ids_left));
    events.push_back(std::move(event));
  }
  return events;
}

// The table of feature sections follows the data, one entry per set bit.
Result<void> read_features(ByteSource& source, std::span<const uint64_t> bits, bool swap, FileHeader& header,
                           event::SessionInfo& info, Diagnostics& diagnostics) {
  uint64_t at = header.data.offset + header.data.size;
  for (uint32_t feature = 0; feature < kFeatureBits; feature++) {
    if (!(bits[feature / 64] >> (feature % 64) & 1)) continue;
    if (!inside({at, 16}, source.size())) {
      diagnostics.add("perfdata_features_missing", Severity::kError, "the file ends before its feature sections", 1, source.name());
      return {};
    }
    std::byte entry[16];
    TRY(source.read_at(at, entry));
    at += sizeof(entry);
    ByteReader in(entry, swap);
    Section section = read_section(in);
    if (!inside(section, source.size())) {
      diagnostics.add("perfdata_section_outside", Severity::kError, "feature sections that lie outside the file were left out", 1,
                      fmt::format("section {} lies outside the file: {} bytes at {}", feature, section.size, section.offset));
      continue;
    }
    if (section.size > kMostFeatureBytes) continue;
    auto bytes = TRY(read_section_bytes(source, section));
    if (feature == kFeatureBuildId) header.build_ids.add_table(bytes, swap);
    else apply_feature(feature, bytes, swap, info, header.events);
  }
  return {};
}

}  // namespace

void apply_feature(uint32_t feature, std::span<const std::byte> payload, bool swap, event::SessionInfo& info,
                   std::vector<FileEvent>& events) {
  ByteReader in(payload, swap);
  switch (feature) {
    case kFeatureHostname: info.hostname = read_text(in); break;
    case kFeatureOsRelease: info.kernel_release = read_text(in); break;
    case kFeatureArch: {
      std::string arch = read_text(in);
      info.arch = arch == "aarch64" || arch == "arm64" ? event::Arch::kAarch64 : event::Arch::kX86_64;
      break;
    }
    case kFeatureCpus:
      in.skip(4);
      info.cpus_online = in.u32();
      break;
    case kFeatureCommand: read_command(in, info); break;
    case kFeatureEvents: read_event_names(in, swap, events); break;
    case kFeatureClock: read_clock(in, info); break;
    default: break;
  }
}

Result<FileHeader> read_file_header(ByteSource& source, bool swap, event::SessionInfo& info, Diagnostics& diagnostics) {
  TRY(source.make_seekable());
  if (source.size() < kFileHeaderBytes)
    return fail(fmt::format("{}: ends at byte {}, in the middle of its header", source.name(), source.size()));
  std::byte bytes[kFileHeaderBytes];
  TRY(source.read_at(0, bytes));
  ByteReader in(bytes, swap);
  in.skip(16);
  uint64_t entry_bytes = in.u64();
  Section attrs = read_section(in);
  FileHeader header;
  header.data = read_section(in);
  in.skip(16);  // event types: not written since 2012
  uint64_t bits[kFeatureBits / 64];
  for (uint64_t& word : bits) word = in.u64();
  header.events = TRY(read_events(source, attrs, entry_bytes, swap));
  if (header.data.offset > source.size())
    return fail(fmt::format("{}: the data begins at byte {}, beyond the end of the file at {}", source.name(), header.data.offset, source.size()));
  if (header.data.size == 0) {
    header.finished = false;
    header.data.size = source.size() - header.data.offset;
  } else if (inside(header.data, source.size())) {
    TRY(read_features(source, bits, swap, header, info, diagnostics));
  }
  return header;
}

}  // namespace cprof::format::perfdata
