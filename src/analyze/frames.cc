// The walker keeps the path of the last stack: the next one is followed from its leaf up to the first site that both
// share, and only what lies below is made anew. Neighbouring samples share most of their stack.
#include "analyze/frames.h"

#include <algorithm>

namespace cprof::analyze {

using profile::CallSiteId;
using profile::FrameKind;
using profile::Line;
using profile::Location;
using profile::LocationId;

FrameWalker::FrameWalker(const profile::Profile& profile)
    : profile_(profile),
      stand_in_of_(profile.locations.size(), StringId{}),
      made_at_(profile.locations.size(), kNotMade) {
  frames_.push_back({.name = profile::kTruncatedFrame, .module = {}, .file = {}});
}

std::string_view FrameWalker::stand_in(LocationId location) {
  StringId& id = stand_in_of_[location.index()];
  if (!id.valid()) id = stand_ins_.intern(stand_in_name(profile_, profile_.locations[location.index()]));
  return stand_ins_[id];
}

Frame FrameWalker::frame(LocationId id, uint16_t line) {
  Frame frame{.name = profile::kUnknownFrame, .module = {}, .file = {}};
  if (!id.valid()) return frame;
  const Location& location = profile_.locations[id.index()];
  frame.location = id;
  frame.line = line;
  frame.kind = location.kind;
  if (location.mapping.valid())
    frame.module = profile::base_name(profile_.text(profile_.mappings[location.mapping.index()].path));

  const std::span<const Line> lines = profile_.lines_of(id);
  if (line < lines.size() && lines[line].function.valid()) {
    const profile::Function& function = profile_.functions[lines[line].function.index()];
    frame.function = lines[line].function;
    frame.name = profile_.text(function.name);
    frame.file = profile_.text(function.file);
    frame.source_line = lines[line].line;
    frame.is_inlined = line + size_t{1} < lines.size();
    frame.is_named = !frame.name.empty() && !profile::is_stand_in(frame.name);
  }
  if (frame.name.empty() || !frame.function.valid()) frame.name = stand_in(id);
  return frame;
}

void FrameWalker::append(LocationId location) {
  const uint16_t count = std::max<uint16_t>(1, profile_.locations[location.index()].line_count);
  uint32_t& first = made_at_[location.index()];
  if (first == kNotMade) {
    first = static_cast<uint32_t>(made_.size());
    for (uint16_t i = count; i-- > 0;) made_.push_back(frame(location, i));
  }
  frames_.insert(frames_.end(), made_.begin() + first, made_.begin() + first + count);
}

std::span<const Frame> FrameWalker::frames(CallSiteId site, profile::StackEnd end) {
  if (!site.valid()) {
    path_.clear();
    frame_count_.clear();
    frames_.resize(1);
    frames_.push_back(frame(LocationId(), 0));
    return std::span(frames_).subspan(1);
  }
  tail_.clear();
  for (CallSiteId at = site; at.valid(); at = profile_.sites[at.index()].parent) {
    const uint32_t depth = profile_.sites[at.index()].depth;
    if (depth < path_.size() && path_[depth] == at) break;
    tail_.push_back(at);
  }
  const size_t shared = profile_.sites[site.index()].depth + size_t{1} - tail_.size();
  path_.resize(shared);
  frame_count_.resize(shared);
  frames_.resize(shared ? frame_count_.back() : 1);
  for (size_t i = tail_.size(); i-- > 0;) {
    append(profile_.sites[tail_[i].index()].location);
    path_.push_back(tail_[i]);
    frame_count_.push_back(static_cast<uint32_t>(frames_.size()));
  }
  return std::span(frames_).subspan(is_cut(end) ? 0 : 1);
}

}  // namespace cprof::analyze
