#include "timeline/open_frames.h"

#include "profile/frame_name.h"

namespace cprof::timeline {

using profile::CallSiteId;
using profile::Location;
using profile::LocationId;

FrameKey OpenFrames::key_of(LocationId id, uint16_t line) const {
  const Location& location = profile_.locations[id.index()];
  const auto lines = profile_.lines_of(id);
  const bool has_line = line < lines.size() && lines[line].function.valid();
  if (has_line) {
    const bool may_be_stand_in = lines.size() == 1 && location.function_start != 0;
    const auto function = lines[line].function;
    if (!may_be_stand_in || !profile::is_stand_in(profile_.text(profile_.functions[function.index()].name)))
      return {FrameKey::By::kFunction, location.kind, function.value, 0};
  }
  if (location.function_start != 0)
    return {FrameKey::By::kFunctionStart, location.kind, location.mapping.value, location.function_start};
  return {FrameKey::By::kLocation, location.kind, id.value, 0};
}

void OpenFrames::expand(LocationId location) {
  const uint16_t count = profile_.locations[location.index()].line_count;
  auto add = [&](uint16_t line) {
    fresh_.push_back({.key = key_of(location, line), .location = location, .line = line});
  };
  if (count == 0) add(0);
  for (uint16_t i = count; i-- > 0;) add(i);
}

// Sites that both stacks share are not looked at again: their frames stay open by definition. Below them frames are
// compared one by one, for another address in the same function is another site but the same frame.
size_t OpenFrames::next_stack(CallSiteId site) {
  fresh_.clear();
  tail_.clear();
  for (CallSiteId at = site; at.valid(); at = profile_.sites[at.index()].parent) {
    const uint32_t depth = profile_.sites[at.index()].depth;
    if (depth < path_.size() && path_[depth] == at) break;
    tail_.push_back(at);
  }
  const size_t shared = site.valid() ? profile_.sites[site.index()].depth + size_t{1} - tail_.size() : 0;
  path_.resize(shared);
  frame_count_.resize(shared);
  const size_t base = shared ? frame_count_.back() : 0;
  for (size_t i = tail_.size(); i-- > 0;) {
    expand(profile_.sites[tail_[i].index()].location);
    path_.push_back(tail_[i]);
    frame_count_.push_back(static_cast<uint32_t>(base + fresh_.size()));
  }
  if (!site.valid()) fresh_.push_back({});

  size_t same = 0;
  while (same < fresh_.size() && base + same < frames_.size() && frames_[base + same].key == fresh_[same].key) ++same;
  fresh_.erase(fresh_.begin(), fresh_.begin() + static_cast<ptrdiff_t>(same));
  return base + same;
}

}  // namespace cprof::timeline
