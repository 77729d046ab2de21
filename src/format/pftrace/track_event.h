// One TrackEvent of a Perfetto trace, its interned names looked up. Used by the pftrace reader.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/pftrace/interned_state.h"
#include "format/pftrace/proto_fields.h"
#include "profile/builder.h"

namespace cprof::format {

struct TrackEvent {
  uint32_t type = 0;
  std::optional<uint64_t> track;
  StringId name = profile::kNoText, category = profile::kNoText;
  std::optional<double> value;
  std::vector<double> extra_values, extra_doubles;
  std::vector<uint64_t> extra_tracks, extra_double_tracks;
  std::optional<int64_t> delta_us, absolute_us;
  char legacy_phase = 0;
  int64_t legacy_duration_us = 0;
  std::optional<int32_t> pid, tid;
  std::vector<profile::Label> labels;  // of debug annotations
  uint64_t annotations_left_out = 0, missing_names = 0;
};

TrackEvent read_track_event(ProtoFields fields, const InternedState& state, profile::ProfileBuilder& builder);

}  // namespace cprof::format
