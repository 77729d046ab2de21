#include "format/pftrace/packet_writer.h"

namespace cprof::format {

using protozero::pbf_writer;

Result<void> PacketWriter::begin_sequence(uint32_t sequence, const std::string& defaults) {
  std::string with_clock = defaults;
  pbf_writer(with_clock).add_uint32(pft::Defaults::kClockId, pft::ClockSnapshot::kMonotonic);
  packet_.clear();
  pbf_writer packet(packet_);
  packet.add_uint32(pft::Packet::kSequenceId, sequence);
  packet.add_uint32(pft::Packet::kSequenceFlags, pft::Packet::kCleared);
  packet.add_bool(pft::Packet::kFirstPacketOnSequence, true);
  packet.add_message(pft::Packet::kDefaults, with_clock);
  return write();
}

// Profiles carry monotonic times only: the trace's clock, BOOTTIME, is declared to show the same, so that times in SQL
// are those of the recording.
Result<void> PacketWriter::put_clocks(uint64_t monotonic_ns, uint64_t realtime_ns) {
  using namespace pft::ClockSnapshot;
  std::string snapshot, clock;
  auto add = [&](uint32_t id, uint64_t time_ns) {
    clock.clear();
    pbf_writer w(clock);
    w.add_uint32(kClockId, id);
    w.add_uint64(kTimestamp, time_ns);
    pbf_writer(snapshot).add_message(kClocks, clock);
  };
  add(kBoottime, monotonic_ns);
  add(kMonotonic, monotonic_ns);
  if (realtime_ns) add(kRealtime, realtime_ns);
  packet_.clear();
  pbf_writer packet(packet_);
  packet.add_message(pft::Packet::kClockSnapshot, snapshot);
  return write();
}

Result<void> PacketWriter::write() {
  field_.clear();
  pbf_writer(field_).add_message(pft::Trace::kPacket, packet_);
  return out_.write(field_);
}

}  // namespace cprof::format
