// The file as a tree of nodes (format/json/json_nodes.h). A profile's members may come in any order, and shared.frames
// before or behind the profiles; so samples are interned as they come, the rest of a profile waits for its end.
#include <fmt/format.h>

#include "format/json/json_nodes.h"
#include "format/json/json_number.h"
#include "format/speedscope/speedscope.h"
#include "format/speedscope/speedscope_builder.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

Result<SpeedscopeValue> as_value(std::string_view literal) {
  const auto value = parse_speedscope_value(literal);
  if (!value) return fail(fmt::format("{} is not a value that 64 bits hold", literal));
  return *value;
}

Result<uint32_t> as_index(std::string_view literal) {
  const auto value = whole_number(literal);
  if (!value || *value < 0 || *value >= INT32_MAX) return fail(fmt::format("{} is not the number of a frame", literal));
  return static_cast<uint32_t>(*value);
}

// 0 for what is no line.
uint32_t as_line(std::string_view literal) {
  const auto value = whole_number(literal);
  return value && *value > 0 && *value <= int64_t{UINT32_MAX} ? static_cast<uint32_t>(*value) : 0;
}

int32_t as_id(std::string_view literal) {
  const auto value = whole_number(literal);
  return value && *value > 0 && *value <= INT32_MAX ? static_cast<int32_t>(*value) : 0;
}

class SpeedscopeReader {
 public:
  explicit SpeedscopeReader(const std::string& name) : builder_(name) {}

  Result<profile::Profile> read(InputStream stream) {
    JsonStream json(std::move(stream));
    JsonWalker walker(root_);
    TRY(json.parse(walker));
    return builder_.take();
  }

 private:
  using Number = std::string_view;

  SpeedscopeBuilder builder_;
  SpeedscopeProfile profile_;
  SpeedscopeEvent event_;
  bool has_at_ = false, has_kind_ = false, has_frame_ = false;
  std::vector<uint32_t> stack_;
  std::string frame_name_, frame_file_;
  uint32_t frame_line_ = 0, frame_column_ = 0;

  // shared.frames
  JsonText frame_name_node_{frame_name_}, frame_file_node_{frame_file_};
  JsonNumber frame_line_node_{[this](Number n) { return frame_line_ = as_line(n), Result<void>(); }};
  JsonNumber frame_column_node_{[this](Number n) { return frame_column_ = as_line(n), Result<void>(); }};
  JsonObject frame_{{{"name", &frame_name_node_},
                     {"file", &frame_file_node_},
                     {"line", &frame_line_node_},
                     {"col", &frame_column_node_}},
                    [this] { return begin_frame(); },
                    [this] { return end_frame(); }};
  JsonList frames_{&frame_};
  JsonObject shared_{{{"frames", &frames_}}};

  // profiles[].samples, .weights
  JsonNumber stack_frame_{[this](Number n) -> Result<void> {
    stack_.push_back(TRY(as_index(n)));
    return {};
  }};
  JsonList sample_{&stack_frame_, [this] { return stack_.clear(), Result<void>(); },
                   [this] { return profile_.samples.add(builder_.stack(stack_)), Result<void>(); }};
  JsonList samples_{&sample_};
  JsonNumber weight_{[this](Number n) -> Result<void> {
    profile_.weights.add(TRY(as_value(n)));
    return {};
  }};
  JsonList weights_{&weight_};

  // profiles[].events
  JsonText event_type_{[this](std::string_view text) { return take_event_type(text); }};
  JsonNumber event_frame_{[this](Number n) -> Result<void> {
    event_.frame = TRY(as_index(n));
    has_frame_ = true;
    return {};
  }};
  JsonNumber event_at_{[this](Number n) -> Result<void> {
    event_.at = TRY(as_value(n));
    has_at_ = true;
    return {};
  }};
  JsonObject event_node_{{{"type", &event_type_}, {"frame", &event_frame_}, {"at", &event_at_}},
                         [this] { return has_at_ = has_kind_ = has_frame_ = false, Result<void>(); },
                         [this] { return end_event(); }};
  JsonList events_{&event_node_};

  // profiles[]
  JsonText type_{profile_.type}, name_{profile_.name}, unit_{profile_.unit};
  JsonNumber start_{[this](Number n) -> Result<void> {
    profile_.start = TRY(as_value(n));
    return {};
  }};
  JsonNumber end_{[this](Number n) -> Result<void> {
    profile_.end = TRY(as_value(n));
    return {};
  }};
  JsonText metric_{profile_.metric}, metric_unit_{profile_.metric_unit}, process_{profile_.process},
      thread_{profile_.thread};
  JsonNumber pid_{[this](Number n) { return profile_.pid = as_id(n), Result<void>(); }};
  JsonNumber tid_{[this](Number n) { return profile_.tid = as_id(n), Result<void>(); }};
  JsonObject ours_{{{"metric", &metric_}, {"unit", &metric_unit_}, {"process", &process_}, {"thread", &thread_},
                    {"pid", &pid_}, {"tid", &tid_}}};
  JsonObject profile_node_{{{"type", &type_}, {"name", &name_}, {"unit", &unit_}, {"startValue", &start_},
                            {"endValue", &end_}, {"samples", &samples_}, {"weights", &weights_}, {"events", &events_},
                            {"cprof", &ours_}},
                           [this] { return profile_ = {}, Result<void>(); },
                           [this] { return builder_.add_profile(profile_); }};
  JsonList profiles_{&profile_node_};
  JsonText title_{builder_.title};
  JsonObject root_{{{"shared", &shared_}, {"profiles", &profiles_}, {"name", &title_}}};

  Result<void> begin_frame() {
    frame_name_.clear();
    frame_file_.clear();
    frame_line_ = frame_column_ = 0;
    return {};
  }

  Result<void> end_frame() {
    const std::string_view name = frame_name_.empty() ? profile::kUnknownFrame : std::string_view(frame_name_);
    builder_.add_frame(name, frame_file_, frame_line_, frame_column_);
    return {};
  }

  Result<void> take_event_type(std::string_view text) {
    if (text != "O" && text != "C") return fail(fmt::format("an event of the type \"{}\"", text));
    event_.is_open = text == "O";
    has_kind_ = true;
    return {};
  }

  Result<void> end_event() {
    if (!has_at_ || !has_kind_ || !has_frame_) return fail("an event without type, frame or at");
    profile_.events.add(event_);
    return {};
  }
};

}  // namespace

Result<profile::Profile> read_speedscope(Input input, const ReadOptions& options) {
  const std::string name = input.name;
  InputStream stream = TRY(InputStream::open(std::move(input), options));
  return SpeedscopeReader(name).read(std::move(stream));
}

}  // namespace cprof::format
