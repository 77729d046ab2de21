// The fields of a protobuf message of unknown origin. As protobuf's own parsers do, a field of another wire type than
// asked for counts as not there: its value is 0 or empty. Damage throws protozero::exception. Used by the pftrace reader.
#pragma once

#include <cstdint>
#include <string_view>

#include <protozero/pbf_reader.hpp>

namespace cprof::format {

class ProtoFields : private protozero::pbf_reader {
 public:
  using WireType = protozero::pbf_wire_type;
  explicit ProtoFields(protozero::data_view bytes) : pbf_reader(bytes) {}

  using pbf_reader::next;
  using pbf_reader::skip;
  using pbf_reader::tag;
  using pbf_reader::wire_type;

  bool get_bool() { return has(WireType::varint) && pbf_reader::get_bool(); }
  int32_t get_int32() { return has(WireType::varint) ? pbf_reader::get_int32() : 0; }
  int64_t get_int64() { return has(WireType::varint) ? pbf_reader::get_int64() : 0; }
  uint32_t get_uint32() { return has(WireType::varint) ? pbf_reader::get_uint32() : 0; }
  uint64_t get_uint64() { return has(WireType::varint) ? pbf_reader::get_uint64() : 0; }
  double get_double() { return has(WireType::fixed64) ? pbf_reader::get_double() : 0; }
  protozero::data_view get_view() { return has(WireType::length_delimited) ? pbf_reader::get_view() : protozero::data_view(); }
  std::string_view get_text() {
    const protozero::data_view view = get_view();
    return {view.data(), view.size()};
  }
  ProtoFields get_message() { return ProtoFields(get_view()); }

  // Of a repeated field, packed or not: on_value(value) for each.
  template <typename OnValue>
  void for_each_uint64(OnValue&& on_value) {
    if (wire_type() == WireType::varint) return on_value(pbf_reader::get_uint64());
    if (!has(WireType::length_delimited)) return;
    for (uint64_t value : pbf_reader::get_packed_uint64()) on_value(value);
  }
  template <typename OnValue>
  void for_each_double(OnValue&& on_value) {
    if (wire_type() == WireType::fixed64) return on_value(pbf_reader::get_double());
    if (!has(WireType::length_delimited)) return;
    for (double value : pbf_reader::get_packed_double()) on_value(value);
  }

 private:
  bool has(WireType wanted) {
    const bool is_wanted = wire_type() == wanted;
    if (!is_wanted) skip();
    return is_wanted;
  }
};

}  // namespace cprof::format
