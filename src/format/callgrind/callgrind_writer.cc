// Each stack adds its value to the line of its leaf, and to each call on the way there, once though recursion may pass it
// more often. Inlined functions are functions like others here. Names are told once and then by their number.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/frames.h"
#include "format/callgrind/callgrind.h"
#include "format/callgrind/events.h"
#include "format/values.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

using profile::Profile;

// A function as this format knows it.
struct Function {
  std::string_view name, file, object;
  auto operator<=>(const Function&) const = default;
};

struct Costs {
  std::vector<int64_t> of_events;
  int64_t times = 0;  // how many values of the first event went through
};

class CallgrindWriter {
 public:
  CallgrindWriter(const Profile& profile, OutputFile& out) : profile_(profile), out_(out), walker_(profile) {}

  void add_event(const ValueChoice& choice, std::string_view name, std::string_view unit) {
    events_.push_back({choice, std::string(name), std::string(unit)});
  }

  Result<void> write(Diagnostics* losses) {
    for (size_t e = 0; e < events_.size(); ++e)
      for_each_value(profile_, events_[e].choice, [&](const StackValue& v) { add(v, e); });
    if (negative_ && losses)
      losses->add("callgrind_negative_values", Severity::kDataLoss, "callgrind costs cannot be below 0; these were left out",
                  negative_);
    TRY(write_header());
    for (const auto& [function, id] : functions_) TRY(write_function(function, id));
    return out_.write(fmt::format("\ntotals:{}\n", joined(totals())));
  }

 private:
  struct Event {
    ValueChoice choice;
    std::string name, unit;
  };
  struct CallKey {
    uint32_t from_line, to;
    auto operator<=>(const CallKey&) const = default;
  };
  struct Node {
    std::map<uint32_t, Costs> lines;
    std::map<CallKey, Costs> calls;
  };

  uint32_t function_id(const analyze::Frame& frame) {
    const Function function{frame.name, frame.file, path_of(frame)};
    has_objects_ |= !function.object.empty();
    auto [it, is_new] = functions_.try_emplace(function, static_cast<uint32_t>(nodes_.size()));
    if (is_new) {
      nodes_.emplace_back();
      rows_.push_back(&it->first);
    }
    return it->second;
  }

  std::string_view path_of(const analyze::Frame& frame) const {
    if (!frame.location.valid()) return {};
    const auto mapping = profile_.locations[frame.location.index()].mapping;
    return mapping.valid() ? profile_.text(profile_.mappings[mapping.index()].path) : std::string_view();
  }

  void add_to(Costs& costs, size_t event, int64_t value) {
    costs.of_events.resize(events_.size());
    costs.of_events[event] = add_clamped(costs.of_events[event], value);
    if (event == 0) ++costs.times;
  }

  void add(const StackValue& v, size_t event) {
    if (v.value < 0) {
      ++negative_;
      return;
    }
    if (v.value == 0) return;
    const auto frames = walker_.frames(v.site, v.end);
    uint32_t caller = 0, caller_line = 0;
    seen_.clear();
    for (size_t i = 0; i < frames.size(); ++i) {
      const uint32_t id = function_id(frames[i]);
      if (i > 0) {
        const CallKey key{caller_line, id};
        const auto call = std::tuple(caller, key);
        if (std::ranges::find(seen_, call) == seen_.end()) add_to(nodes_[caller].calls[key], event, v.value);
        if (seen_.size() < kMaxSeen) seen_.push_back(call);
      }
      caller = id;
      caller_line = frames[i].source_line;
    }
    add_to(nodes_[caller].lines[caller_line], event, v.value);
  }

  std::vector<int64_t> totals() const {
    std::vector<int64_t> sums(events_.size());
    for (const Node& node : nodes_)
      for (const auto& [line, costs] : node.lines)
        for (size_t e = 0; e < sums.size(); ++e) sums[e] = add_clamped(sums[e], costs.of_events[e]);
    return sums;
  }

  static std::string joined(std::span<const int64_t> values) {
    std::string text;
    for (int64_t value : values) text += fmt::format(" {}", value);
    return text;
  }

  // Words of events that are the same after cleaning get a number.
  std::vector<std::string> words() const {
    std::vector<std::string> words;
    for (const Event& event : events_) {
      std::string word = event_word(event.name);
      while (std::ranges::find(words, word) != words.end()) word += "_" + std::to_string(words.size());
      words.push_back(word);
    }
    return words;
  }

  Result<void> write_header() {
    std::string text = "# callgrind format\nversion: 1\ncreator: cprof " CPROF_VERSION "\n";
    if (!profile_.run.command.empty()) text += fmt::format("cmd: {}\n", clean(profile_.run.command));
    text += "positions: line\n";
    std::string line = "events:";
    const std::vector<std::string> event_words = words();
    for (size_t e = 0; e < events_.size(); ++e) {
      text += event_line(event_words[e], clean(events_[e].name), clean(events_[e].unit)) + "\n";
      line += " " + event_words[e];
    }
    return out_.write(text + line + fmt::format("\nsummary:{}\n", joined(totals())));
  }

  // Names must not end a line.
  static std::string clean(std::string_view text) {
    std::string result(text);
    std::ranges::replace_if(result, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    return result;
  }

  using Names = std::map<std::string_view, size_t>;
  static std::string numbered(Names& names, std::string_view name) {
    auto [it, is_new] = names.try_emplace(name, names.size() + 1);
    if (!is_new) return fmt::format("({})", it->second);
    return fmt::format("({}) {}", it->second, name.empty() ? "???" : clean(name));
  }

  // Functions that share a name have one number only if file and object are equal too: readers know no better.
  Result<void> write_function(const Function& function, uint32_t id) {
    std::string text = "\n";
    if (has_objects_) text += fmt::format("ob={}\n", numbered(objects_, function.object));
    text += fmt::format("fl={}\nfn={}\n", numbered(files_, function.file), numbered(names_, function.name));
    const Node& node = nodes_[id];
    for (const auto& [line, costs] : node.lines) text += fmt::format("{}{}\n", line, joined(costs.of_events));
    for (const auto& [key, costs] : node.calls) {
      const Function& to = *rows_[key.to];
      if (to.object != function.object) text += fmt::format("cob={}\n", numbered(objects_, to.object));
      if (to.file != function.file) text += fmt::format("cfi={}\n", numbered(files_, to.file));
      text += fmt::format("cfn={}\ncalls={} {}\n{}{}\n", numbered(names_, to.name), std::max<int64_t>(costs.times, 1), first_line(key.to),
                          key.from_line, joined(costs.of_events));
    }
    return out_.write(text);
  }

  uint32_t first_line(uint32_t id) const {
    const Node& node = nodes_[id];
    if (!node.lines.empty()) return node.lines.begin()->first;
    return node.calls.empty() ? 0 : node.calls.begin()->first.from_line;
  }

  static constexpr size_t kMaxSeen = 4096;  // calls of one stack that are told apart

  const Profile& profile_;
  OutputFile& out_;
  analyze::FrameWalker walker_;
  std::vector<Event> events_;
  std::map<Function, uint32_t> functions_;  // in the order of the file
  std::vector<const Function*> rows_;       // by id
  std::vector<Node> nodes_;                 // by id
  std::vector<std::tuple<uint32_t, CallKey>> seen_;
  Names objects_, files_, names_;
  uint64_t negative_ = 0;
  bool has_objects_ = false;
};

}  // namespace

Result<void> write_callgrind(const Profile& profile, OutputFile& out, const WriteOptions& options) {
  CallgrindWriter writer(profile, out);
  if (!options.metric.empty() || options.weight != Weight::kSamples) {
    const ValueChoice choice = TRY(choose_value(profile, options));
    const profile::Metric& metric = profile.metrics[choice.metric.index()];
    const bool is_wall = choice.kind == ValueChoice::Kind::kWall;
    writer.add_event(choice, is_wall ? "wall" : profile.text(metric.name), is_wall ? "nanoseconds" : profile.text(metric.unit));
    return writer.write(options.losses);
  }
  if (profile.metrics.empty()) return fail("this profile has no values");
  for (size_t i = 0; i < profile.metrics.size(); ++i)
    writer.add_event({ValueChoice::Kind::kWeight, profile::MetricId(i), 1}, profile.text(profile.metrics[i].name),
                     profile.text(profile.metrics[i].unit));
  return writer.write(options.losses);
}

}  // namespace cprof::format
