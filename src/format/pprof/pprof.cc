#include "format/pprof/pprof.h"

#include <protozero/pbf_reader.hpp>

#include "format/pprof/pprof_fields.h"

namespace cprof::format {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

bool is_value_type(pbf_reader message) {
  while (message.next()) {
    bool is_field = message.tag_and_type() == tag_and_type(pb::ValueType::kType, pbf_wire_type::varint) ||
                    message.tag_and_type() == tag_and_type(pb::ValueType::kUnit, pbf_wire_type::varint);
    if (!is_field) return false;
    message.skip();
  }
  return true;
}

bool is_numeric(uint32_t field) {
  using namespace pb::Profile;
  return (field >= kDropFrames && field <= kDurationNanos) || (field >= kPeriod && field <= kDefaultSampleType);
}

// Fields of a Profile only, each of its type, and a sample_type among those that the head holds whole.
bool is_profile(pbf_reader reader, bool& seen_sample_type) {
  while (reader.next()) {
    if (reader.tag() == 0 || reader.tag() > pb::Profile::kDocUrl) return false;
    bool is_packed_comment =
        reader.tag() == pb::Profile::kComment && reader.wire_type() == pbf_wire_type::length_delimited;
    bool wants_varint = (is_numeric(reader.tag()) && !is_packed_comment) || reader.tag() == pb::Profile::kDocUrl;
    if (reader.wire_type() != (wants_varint ? pbf_wire_type::varint : pbf_wire_type::length_delimited)) return false;
    if (reader.tag() != pb::Profile::kSampleType) {
      reader.skip();
      continue;
    }
    if (!is_value_type(reader.get_message())) return false;
    seen_sample_type = true;
  }
  return true;
}

}  // namespace

bool sniff_pprof(std::span<const std::byte> head) {
  bool seen_sample_type = false;
  try {
    pbf_reader reader(reinterpret_cast<const char*>(head.data()), head.size());
    return is_profile(reader, seen_sample_type) && seen_sample_type;
  } catch (const protozero::exception&) {
    return seen_sample_type;  // the head ends inside a field
  }
}

const FormatInfo& pprof_format() {
  static const FormatInfo info = {.name = "pprof",
                                  .title = "pprof profile",
                                  .extensions = {".pb.gz", ".pb", ".pprof"},
                                  .sniff = sniff_pprof,
                                  .read = read_pprof,
                                  .open_source = nullptr,
                                  .write = write_pprof,
                                  .has_system_names = true};
  return info;
}

}  // namespace cprof::format
