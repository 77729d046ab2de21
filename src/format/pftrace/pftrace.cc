#include "format/pftrace/pftrace.h"

#include <protozero/pbf_reader.hpp>

#include "format/pftrace/pftrace_fields.h"
#include "format/pprof/pprof.h"

namespace cprof::format {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// Whether a packet has what all that matter to us have: a sequence, a time or clocks.
bool is_packet(pbf_reader packet) {
  bool known = false;
  while (packet.next()) {
    const bool is_number = packet.wire_type() == pbf_wire_type::varint;
    switch (packet.tag()) {
      case pft::Packet::kTimestamp:
      case pft::Packet::kSequenceId:
        if (!is_number) return false;
        known = true;
        break;
      case pft::Packet::kClockSnapshot:
      case pft::Packet::kCompressedPackets:
      case pft::Packet::kZstdPackets:
      case pft::Packet::kTrackDescriptor:
        if (is_number) return false;
        known = true;
        break;
      default: break;
    }
    packet.skip();
  }
  return known;
}

}  // namespace

bool sniff_pftrace(std::span<const std::byte> head) {
  int packets = 0;
  bool known = false;
  try {
    pbf_reader trace(reinterpret_cast<const char*>(head.data()), head.size());
    while (packets < 8 && trace.next()) {
      if (trace.tag() != pft::Trace::kPacket || trace.wire_type() != pbf_wire_type::length_delimited) return false;
      known |= is_packet(trace.get_message());
      ++packets;
    }
  } catch (const protozero::end_of_buffer_exception&) {
    return known;  // the head ends inside a packet
  } catch (const protozero::exception&) {
    return false;
  }
  return known;
}

const FormatInfo& pftrace_format() {
  static const FormatInfo info = {.name = "pftrace",
                                  .title = "Perfetto trace",
                                  .extensions = {".pftrace", ".perfetto-trace"},
                                  .sniff = sniff_pftrace,
                                  .read = read_pftrace,
                                  .open_source = nullptr,
                                  .write = write_pftrace};
  return info;
}

}  // namespace cprof::format
