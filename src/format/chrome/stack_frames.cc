#include "format/chrome/stack_frames.h"

#include "format/frame_text.h"
#include "format/json/json_number.h"
#include "profile/frame_name.h"

namespace cprof::format::chrome {
namespace {

using profile::FrameKind;

// A category that is the path of a file, or a region's name in brackets, as our writer gives it.
bool is_module(std::string_view category) { return category.starts_with('/') || category.starts_with('['); }

FrameKind kind_named(std::string_view name, FrameKind otherwise) {
  if (name == "kernel") return FrameKind::kKernel;
  if (name == "jit") return FrameKind::kJit;
  if (name == "interpreted") return FrameKind::kInterpreted;
  return name == "user" ? FrameKind::kUser : otherwise;
}

}  // namespace

JsonTokenizer::Token StackFrames::parse(JsonTokenizer& json) {
  while (true) {
    Token token = json.next();
    if (token != Token::kKey) return token;
    const StringId id = builder_.intern(json.text());
    token = json.next();
    Frame frame;
    token = token == Token::kBeginObject ? parse_frame(json, frame) : json.skip(token);
    if (JsonTokenizer::is_over(token)) return token;
    frames_[id] = frame;
  }
}

JsonTokenizer::Token StackFrames::parse_frame(JsonTokenizer& json, Frame& frame) {
  struct Field {
    std::string_view key;
    StringId Frame::* into;
  };
  constexpr Field kFields[] = {{"name", &Frame::name},
                               {"parent", &Frame::parent},
                               {"category", &Frame::module},
                               {"file", &Frame::file},
                               {"kind", &Frame::kind}};
  while (true) {
    Token token = json.next();
    if (token != Token::kKey) return token;
    const std::string_view key = json.text();
    const Field* known = nullptr;
    for (const Field& field : kFields)
      if (field.key == key) known = &field;
    const bool is_line = key == "line";
    token = json.next();
    if (token == Token::kText || token == Token::kNumber) {
      if (known) frame.*known->into = builder_.intern(json.text());
      const auto line = is_line ? whole_number(json.text()) : std::nullopt;
      if (line && *line > 0 && *line <= UINT32_MAX) frame.line = static_cast<uint32_t>(*line);
    }
    token = json.skip(token);
    if (JsonTokenizer::is_over(token)) return token;
  }
}

profile::LocationId StackFrames::location_of(const Frame& frame) {
  const auto& strings = builder_.profile().strings;
  const StringId name = frame.name == profile::kNoText ? builder_.intern(profile::kUnknownFrame) : frame.name;
  const std::string_view module = strings[frame.module];
  profile::MappingId mapping;
  FrameKind kind = frame.name == profile::kNoText ? FrameKind::kUnknown : FrameKind::kUser;
  if (is_module(module)) {
    mapping = builder_.mapping({.path = frame.module});
    kind = kind_of_module(module);
  }
  kind = kind_named(strings[frame.kind], kind);
  const profile::Line line{builder_.function({.name = name, .system_name = name, .file = frame.file}), frame.line, 0};
  return builder_.named_location(mapping, kind, {&line, 1});
}

// Up to the first frame that is made already, then down again.
profile::CallSiteId StackFrames::site_of(StringId id) {
  path_.clear();
  profile::CallSiteId site;
  bool is_broken = false;
  while (id != profile::kNoText) {
    const auto found = frames_.find(id);
    if (found == frames_.end() || found->second.state == State::kOpen || found->second.state == State::kBroken) {
      is_broken = true;
      break;
    }
    Frame& frame = found->second;
    if (frame.state == State::kMade) {
      site = frame.site;
      break;
    }
    frame.state = State::kOpen;
    path_.push_back(&frame);
    id = frame.parent;
  }
  for (size_t i = path_.size(); i-- > 0;) {
    path_[i]->state = is_broken ? State::kBroken : State::kMade;
    if (!is_broken) path_[i]->site = site = builder_.site(site, location_of(*path_[i]));
  }
  return is_broken ? profile::CallSiteId() : site;
}

profile::CallSiteId StackFrames::site_of(std::span<const StringId> root_first) {
  profile::CallSiteId site;
  for (StringId id : root_first) {
    const auto found = frames_.find(id);
    site = builder_.site(site, location_of(found == frames_.end() ? Frame{.name = id} : found->second));
  }
  return site;
}

}  // namespace cprof::format::chrome
