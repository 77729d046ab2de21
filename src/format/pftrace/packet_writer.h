// One trace packet after the other into the file, each with its sequence and flags right. Used by the pftrace writer.
#pragma once

#include <cstdint>
#include <string>

#include <protozero/pbf_writer.hpp>

#include "base/file.h"
#include "base/result.h"
#include "format/pftrace/pftrace_fields.h"

namespace cprof::format {

class PacketWriter {
 public:
  explicit PacketWriter(OutputFile& out) : out_(out) {}

  // fill(protozero::pbf_writer& packet) adds what the packet says. The first packet of each sequence must come from
  // begin_sequence(): it clears the sequence's state and sets its clock.
  template <typename Fill>
  Result<void> put(uint32_t sequence, Fill&& fill) {
    packet_.clear();
    protozero::pbf_writer packet(packet_);
    packet.add_uint32(pft::Packet::kSequenceId, sequence);
    packet.add_uint32(pft::Packet::kSequenceFlags, pft::Packet::kNeeds);
    fill(packet);
    return write();
  }

  // defaults: an encoded TracePacketDefaults without its clock.
  Result<void> begin_sequence(uint32_t sequence, const std::string& defaults);

  // Links CLOCK_MONOTONIC, in which all timestamps are, to the trace's own clock; before all else.
  Result<void> put_clocks(uint64_t monotonic_ns, uint64_t realtime_ns);

 private:
  Result<void> write();

  OutputFile& out_;
  std::string packet_, field_;
};

}  // namespace cprof::format
