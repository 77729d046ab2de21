// The samples of one metric as one packet sequence: PerfSample packets with the call stacks, frames, mappings and texts
// that they use interned in the same packet or an earlier one. Used by the pftrace writer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/frames.h"
#include "format/address_book.h"
#include "format/pftrace/packet_writer.h"
#include "profile/profile.h"

namespace cprof::format {

class SampleSequence {
 public:
  SampleSequence(const profile::Profile& profile, const AddressBook& book, profile::MetricId metric,
                 uint32_t sequence, PacketWriter& packets);

  Result<void> begin();
  Result<void> write(const profile::Sample& sample);

 private:
  uint64_t intern_callstack(const profile::Sample& sample);
  uint64_t intern_frame(const analyze::Frame& frame);
  uint64_t intern_mapping(uint32_t module);
  uint64_t intern_text(uint32_t field, std::string_view text);
  uint64_t relative_pc(profile::LocationId location) const;

  const profile::Profile& profile_;
  const AddressBook& book_;
  profile::MetricId metric_;
  uint32_t sequence_;
  PacketWriter& packets_;
  analyze::FrameWalker walker_;
  std::vector<uint64_t> callstacks_, cut_callstacks_;   // by site, +1 for none; 0: not yet interned
  std::vector<uint64_t> first_frames_;                  // by location: iid of its line 0, the others follow
  std::vector<uint64_t> mappings_;                      // by module of the book
  uint64_t unknown_mapping_ = 0, unknown_frame_ = 0, truncated_frame_ = 0;
  struct Texts {
    StringTable table;
    bool has_empty = false;
  };
  Texts functions_, paths_, sources_, build_ids_;
  uint64_t next_frame_ = 1, next_callstack_ = 1, next_mapping_ = 1;
  std::string interned_, row_, sample_;
};

}  // namespace cprof::format
