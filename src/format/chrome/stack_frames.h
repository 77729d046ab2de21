// The "stackFrames" of a Chrome trace: a tree of frames, each naming its parent, which stands anywhere in the file. Used
// by the Chrome trace reader; one thread.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "format/json/tokenizer.h"
#include "profile/builder.h"

namespace cprof::format::chrome {

class StackFrames {
 public:
  explicit StackFrames(profile::ProfileBuilder& builder) : builder_(builder) {}

  // The object whose opening bracket was the newest token. Gives its last token, kEnd or kBad.
  JsonTokenizer::Token parse(JsonTokenizer& json);

  // Call sites of frame ids and of stacks that stand in an event; after the whole file was read. Invalid where the frame,
  // or one of its parents, is unknown or its own ancestor.
  profile::CallSiteId site_of(StringId id);
  profile::CallSiteId site_of(std::span<const StringId> root_first);  // frame ids or names

 private:
  using Token = JsonTokenizer::Token;
  enum class State : uint8_t { kUnknown, kOpen, kMade, kBroken };
  struct Frame {
    StringId name = profile::kNoText, parent = profile::kNoText, module = profile::kNoText, file = profile::kNoText;
    StringId kind = profile::kNoText;
    uint32_t line = 0;
    State state = State::kUnknown;
    profile::CallSiteId site{};
  };

  Token parse_frame(JsonTokenizer& json, Frame& frame);
  profile::LocationId location_of(const Frame& frame);

  profile::ProfileBuilder& builder_;
  std::unordered_map<StringId, Frame> frames_;  // by the text of their id
  std::vector<Frame*> path_;
};

}  // namespace cprof::format::chrome
