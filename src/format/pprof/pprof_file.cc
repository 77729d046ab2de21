// Two passes over the top level of the message: the tables, then, when they are known, the samples, which most writers
// put first. protozero's exceptions on damaged bytes end here.
#include "format/pprof/pprof_file.h"

#include <fmt/format.h>

#include <protozero/pbf_reader.hpp>

#include "format/pprof/pprof_fields.h"

namespace cprof::format {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

constexpr uint32_t number(uint32_t field) { return tag_and_type(field, pbf_wire_type::varint); }
constexpr uint32_t bytes_of(uint32_t field) { return tag_and_type(field, pbf_wire_type::length_delimited); }

// Numbers come one by one or packed; a reader takes both.
template <typename T>
void append_packed(pbf_reader& reader, std::vector<T>& into) {
  for (uint64_t value : reader.get_packed_uint64()) into.push_back(static_cast<T>(value));
}

int64_t as_int(pbf_reader& reader) { return reader.get_int64(); }

PprofFile::ValueType value_type(pbf_reader message) {
  PprofFile::ValueType result;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case number(pb::ValueType::kType): result.type = as_int(message); break;
      case number(pb::ValueType::kUnit): result.unit = as_int(message); break;
      default: message.skip();
    }
  }
  return result;
}

PprofFile::Mapping mapping(pbf_reader message) {
  using namespace pb::Mapping;
  PprofFile::Mapping m;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case number(kId): m.id = message.get_uint64(); break;
      case number(kMemoryStart): m.start = message.get_uint64(); break;
      case number(kMemoryLimit): m.limit = message.get_uint64(); break;
      case number(kFileOffset): m.offset = message.get_uint64(); break;
      case number(kFilename): m.filename = as_int(message); break;
      case number(kBuildId): m.build_id = as_int(message); break;
      case number(kHasFunctions): m.has_functions = message.get_uint64() != 0; break;
      case number(kHasFilenames): m.has_filenames = message.get_uint64() != 0; break;
      case number(kHasLineNumbers): m.has_line_numbers = message.get_uint64() != 0; break;
      case number(kHasInlineFrames): m.has_inline_frames = message.get_uint64() != 0; break;
      default: message.skip();
    }
  }
  return m;
}

PprofFile::Line line(pbf_reader message) {
  PprofFile::Line result;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case number(pb::Line::kFunctionId): result.function_id = message.get_uint64(); break;
      case number(pb::Line::kLine): result.line = as_int(message); break;
      case number(pb::Line::kColumn): result.column = as_int(message); break;
      default: message.skip();
    }
  }
  return result;
}

PprofFile::Location location(pbf_reader message, std::vector<PprofFile::Line>& lines) {
  using namespace pb::Location;
  PprofFile::Location result;
  result.first_line = static_cast<uint32_t>(lines.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case number(kId): result.id = message.get_uint64(); break;
      case number(kMappingId): result.mapping_id = message.get_uint64(); break;
      case number(kAddress): result.address = message.get_uint64(); break;
      case number(kIsFolded): result.is_folded = message.get_uint64() != 0; break;
      case bytes_of(kLine): lines.push_back(line(message.get_message())); break;
      default: message.skip();
    }
  }
  result.line_count = static_cast<uint32_t>(lines.size()) - result.first_line;
  return result;
}

PprofFile::Function function(pbf_reader message) {
  using namespace pb::Function;
  PprofFile::Function result;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case number(kId): result.id = message.get_uint64(); break;
      case number(kName): result.name = as_int(message); break;
      case number(kSystemName): result.system_name = as_int(message); break;
      case number(kFilename): result.filename = as_int(message); break;
      case number(kStartLine): result.start_line = as_int(message); break;
      default: message.skip();
    }
  }
  return result;
}

PprofFile::Label label(pbf_reader message) {
  using namespace pb::Label;
  PprofFile::Label result;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case number(kKey): result.key = as_int(message); break;
      case number(kStr): result.str = as_int(message); break;
      case number(kNum): result.num = as_int(message); break;
      case number(kNumUnit): result.num_unit = as_int(message); break;
      default: message.skip();
    }
  }
  return result;
}

void sample(pbf_reader message, PprofSample& into) {
  using namespace pb::Sample;
  into.locations.clear();
  into.values.clear();
  into.labels.clear();
  while (message.next()) {
    switch (message.tag_and_type()) {
      case number(kLocationId): into.locations.push_back(message.get_uint64()); break;
      case bytes_of(kLocationId): append_packed(message, into.locations); break;
      case number(kValue): into.values.push_back(as_int(message)); break;
      case bytes_of(kValue): append_packed(message, into.values); break;
      case bytes_of(kLabel): into.labels.push_back(label(message.get_message())); break;
      default: message.skip();
    }
  }
}

void top_level_field(pbf_reader& reader, PprofFile& file) {
  using namespace pb::Profile;
  switch (reader.tag_and_type()) {
    case bytes_of(kSampleType): file.sample_types.push_back(value_type(reader.get_message())); break;
    case bytes_of(kMapping): file.mappings.push_back(mapping(reader.get_message())); break;
    case bytes_of(kLocation): file.locations.push_back(location(reader.get_message(), file.lines)); break;
    case bytes_of(kFunction): file.functions.push_back(function(reader.get_message())); break;
    case bytes_of(kStringTable): {
      auto text = reader.get_view();
      file.strings.emplace_back(text.data(), text.size());
      break;
    }
    case number(kDropFrames): file.drop_frames = as_int(reader); break;
    case number(kKeepFrames): file.keep_frames = as_int(reader); break;
    case number(kTimeNanos): file.time_nanos = as_int(reader); break;
    case number(kDurationNanos): file.duration_nanos = as_int(reader); break;
    case bytes_of(kPeriodType):
      file.period_type = value_type(reader.get_message());
      file.has_period_type = true;
      break;
    case number(kPeriod): file.period = as_int(reader); break;
    case number(kComment): file.comments.push_back(as_int(reader)); break;
    case bytes_of(kComment): append_packed(reader, file.comments); break;
    case number(kDefaultSampleType): file.default_sample_type = as_int(reader); break;
    default: reader.skip();
  }
}

// Calls on_field for each field; false from next() or an exception of protozero ends it.
Result<void> for_each_field(std::span<const std::byte> bytes, const std::string& name,
                            const std::function<Result<void>(pbf_reader&)>& on_field) {
  pbf_reader reader(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t at = 0;
  try {
    for (;;) {
      at = bytes.size() - reader.length();
      if (!reader.next()) return {};
      TRY(on_field(reader));
    }
  } catch (const protozero::end_of_buffer_exception&) {
    return fail(fmt::format("{}: cut off: the field at byte {} goes beyond the end, {} bytes", name, at, bytes.size()));
  } catch (const protozero::exception& error) {
    return fail(fmt::format("{}: damaged at byte {}: {}", name, at, error.what()));
  }
}

}  // namespace

Result<PprofFile> parse_pprof(std::span<const std::byte> bytes, const std::string& name) {
  PprofFile file;
  TRY(for_each_field(bytes, name, [&](pbf_reader& reader) -> Result<void> {
    top_level_field(reader, file);
    return {};
  }));
  return file;
}

Result<void> for_each_pprof_sample(std::span<const std::byte> bytes, const std::string& name,
                                   const std::function<Result<void>(const PprofSample&)>& on_sample) {
  PprofSample scratch;
  return for_each_field(bytes, name, [&](pbf_reader& reader) -> Result<void> {
    if (reader.tag_and_type() != bytes_of(pb::Profile::kSample)) {
      reader.skip();
      return {};
    }
    sample(reader.get_message(), scratch);
    return on_sample(scratch);
  });
}

bool IdIndex::add(uint64_t id, uint32_t row) {
  if (id >= dense_limit_) return sparse_.try_emplace(id, row).second;
  if (id >= dense_.size()) dense_.resize(id + 1, kNone);
  if (dense_[id] != kNone) return false;
  dense_[id] = row;
  return true;
}

uint32_t IdIndex::find(uint64_t id) const {
  if (id < dense_.size()) return dense_[id];
  if (sparse_.empty()) return kNone;
  auto it = sparse_.find(id);
  return it == sparse_.end() ? kNone : it->second;
}

}  // namespace cprof::format
