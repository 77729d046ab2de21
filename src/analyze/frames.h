// What people read of a stack: call sites as display frames, root first, inlined functions expanded. The one definition
// that every text output and view uses, so that they agree. Each thread makes its own FrameWalker.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/string_table.h"
#include "profile/frame_name.h"
#include "profile/profile.h"

namespace cprof::analyze {

struct Frame {
  std::string_view name;           // never empty: "f(int)", "[libx.so+0x4080]", "[unknown]", "[truncated]"
  std::string_view module;         // base name of the mapped file, "" unknown
  std::string_view file;           // source file, "" unknown
  uint32_t source_line = 0;        // 0 unknown
  profile::LocationId location{};  // invalid: [unknown] or [truncated]
  profile::FunctionId function{};  // invalid when the location has no name
  uint16_t line = 0;               // index into the location's lines
  profile::FrameKind kind = profile::FrameKind::kUnknown;
  bool is_inlined = false;  // has no frame of its own: lives in the frame before it
  bool is_named = false;    // name comes from a symbol
};

class FrameWalker {
 public:
  explicit FrameWalker(const profile::Profile& profile);  // which must outlive it

  // Root first. An invalid site is the one frame [unknown]; a stack that was cut at its root side begins with
  // [truncated]. The span is valid until the next call, its texts as long as the walker.
  std::span<const Frame> frames(profile::CallSiteId site, profile::StackEnd end = profile::StackEnd::kComplete);
  std::span<const Frame> frames(const profile::Sample& sample) { return frames(sample.site, sample.end); }

  // One frame; an invalid location is [unknown].
  Frame frame(profile::LocationId location, uint16_t line);

 private:
  static constexpr uint32_t kNotMade = 0xffffffff;

  std::string_view stand_in(profile::LocationId location);
  void append(profile::LocationId location);

  const profile::Profile& profile_;
  StringTable stand_ins_;
  std::vector<StringId> stand_in_of_;  // by location; invalid until asked for
  std::vector<uint32_t> made_at_;      // by location: where its frames begin in made_; kNotMade
  std::vector<Frame> made_;
  std::vector<Frame> frames_;                     // [0] is the [truncated] mark
  std::vector<profile::CallSiteId> path_, tail_;  // the sites of frames_, root first; scratch
  std::vector<uint32_t> frame_count_;             // frames_.size() after each site of path_
};

// Whether the stack lost its root side, so that its first frame is not a real root.
constexpr bool is_cut(profile::StackEnd end) {
  return end == profile::StackEnd::kMaxDepth || end == profile::StackEnd::kTruncatedSnapshot;
}

}  // namespace cprof::analyze
