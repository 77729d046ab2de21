// The frames that are open at one moment of a thread, and the step from one sample's stack to the next: the comparison
// from the root that gives stackdiff its name. Private to timeline. Its memory is the depth of the deepest stack.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/profile.h"

namespace cprof::timeline {

// What must be equal for a frame to go on. By symbol where there is one; unnamed code by module and function start, so
// that two addresses of one function do not look like a return and a call; else by its address.
struct FrameKey {
  enum class By : uint8_t { kNothing, kFunction, kFunctionStart, kLocation };
  By by = By::kNothing;
  profile::FrameKind kind = profile::FrameKind::kUnknown;
  uint32_t owner = 0;  // function, mapping or location
  uint64_t start = 0;
  bool operator==(const FrameKey&) const = default;
};

struct OpenFrame {
  FrameKey key;
  profile::LocationId location{};
  uint16_t line = 0;
  uint64_t start_ns = 0;
  uint64_t ordinal = 0;  // how many frames were opened before it in this thread
};

class OpenFrames {
 public:
  explicit OpenFrames(const profile::Profile& profile) : profile_(profile) {}

  // Moves to the stack of `site` (invalid: one frame [unknown]). Calls close(frame, depth) for what vanished, deepest
  // first, then open(frame, depth) for what is new, outermost first.
  template <typename Close, typename Open>
  void move_to(profile::CallSiteId site, uint64_t time_ns, Close&& close, Open&& open) {
    const size_t kept = next_stack(site);
    close_down_to(kept, close);
    for (const OpenFrame& frame : fresh_) {
      frames_.push_back(frame);
      frames_.back().start_ns = time_ns;
      frames_.back().ordinal = opened_++;
      open(frames_.back(), static_cast<uint32_t>(frames_.size() - 1));
    }
  }

  template <typename Close>
  void close_all(Close&& close) {
    close_down_to(0, close);
    path_.clear();
    frame_count_.clear();
  }

  uint64_t opened() const { return opened_; }

 private:
  template <typename Close>
  void close_down_to(size_t kept, Close&& close) {
    for (; frames_.size() > kept; frames_.pop_back()) close(frames_.back(), static_cast<uint32_t>(frames_.size() - 1));
  }

  size_t next_stack(profile::CallSiteId site);  // fills fresh_; how many open frames stay
  void expand(profile::LocationId location);    // into fresh_
  FrameKey key_of(profile::LocationId location, uint16_t line) const;

  const profile::Profile& profile_;
  std::vector<OpenFrame> frames_, fresh_;
  std::vector<profile::CallSiteId> path_, tail_;  // the sites of frames_, root first; scratch
  std::vector<uint32_t> frame_count_;             // frames up to and with each site of path_
  uint64_t opened_ = 0;
};

}  // namespace cprof::timeline
