// A line at a time: "key: value" of the header, "key=name" that says where the following costs belong, and lines of costs
// that begin with a position. Names may be numbered when they first come, "(3) main", and be told by their number later.
// A position may be relative to the one before it: +3, -2, *.
#include <fmt/format.h>

#include <array>

#include "base/ascii.h"
#include "base/number_map.h"
#include "format/callgrind/call_graph.h"
#include "format/callgrind/callgrind.h"
#include "format/callgrind/events.h"
#include "format/callgrind/graph_stacks.h"
#include "format/line_reader.h"
#include "format/values.h"
#include "format/words.h"
#include "profile/builder.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

// "12", "0x1f".
std::optional<uint64_t> number_of(std::string_view text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  if (is_hex) text.remove_prefix(2);
  uint64_t value = 0;
  return parse_number(text, value, is_hex ? 16 : 10) ? std::optional(value) : std::nullopt;
}

class CallgrindReader {
 public:
  explicit CallgrindReader(LineReader lines) : lines_(std::move(lines)) { run().source = lines_.name(); }

  Result<profile::Profile> read() {
    while (auto line = TRY(lines_.next()))
      if (auto done = add_line(*line); !done)
        return fail(fmt::format("{}: line {}: {}", lines_.name(), lines_.line_number(), done.error().message));
    if (is_call_ || is_jump_) return fail(fmt::format("{}: ends inside a call, at line {}", lines_.name(), lines_.line_number()));
    if (graph_.places().empty() && graph_.calls().empty()) return fail(fmt::format("{}: no costs", lines_.name()));
    check_total();
    add_thread();
    add_stacks(graph_, metrics_, {.thread = thread_, .believe_calls = !told_total_}, builder_);
    return builder_.take();
  }

 private:
  profile::RunInfo& run() { return builder_.profile().run; }

  Result<void> add_line(std::string_view line) {
    line = trim(line);
    if (line.empty() || line[0] == '#') return {};
    const char first = line[0];
    if (is_digit(first) || first == '+' || first == '-' || first == '*') return add_costs(line);
    const size_t end = line.find_first_of(":=");
    if (end == line.npos) return fail("neither a header, nor a name, nor costs");
    const std::string_view key = line.substr(0, end), value = trim(line.substr(end + 1));
    return line[end] == '=' ? add_name(key, value) : add_header(key, value);
  }

  Result<void> add_header(std::string_view key, std::string_view value) {
    if (key == "events") return add_events(value);
    if (key == "positions") return set_positions(value);
    if (key == "cmd") run().command = value;
    if (key == "creator") is_ours_ = value.starts_with("cprof");
    if (key == "pid") pid_ = number_of(value).value_or(0);
    if (key == "event" && is_ours_) long_names_.emplace_back(value);
    if (key == "summary" || key == "totals") told_total_ = number_of(take_word(value));
    return {};
  }

  Result<void> set_positions(std::string_view value) {
    position_count_ = 0;
    line_position_ = kNoLine;
    while (!value.empty()) {
      if (position_count_ == positions_.size()) return fail("more than 3 kinds of positions");
      if (take_word(value) == "line") line_position_ = position_count_;
      ++position_count_;
    }
    return position_count_ ? Result<void>() : fail("no positions");
  }

  // Parts of one file may repeat the line.
  Result<void> add_events(std::string_view value) {
    if (!metrics_.empty()) return value == event_line_ ? Result<void>() : fail("not supported: parts with other events");
    event_line_ = value;
    constexpr size_t kMaxEvents = 64;
    while (!value.empty()) {
      if (events_.size() == kMaxEvents) return fail("more than 64 events");
      events_.push_back(parse_event(take_word(value), long_names_));
      const CallgrindEvent& event = events_.back();
      metrics_.push_back(builder_.add_metric(event.name, event.unit));
    }
    if (events_.empty()) return fail("no events");
    graph_.set_event_count(events_.size());
    run().default_metric = builder_.profile().metrics[0].name;
    return {};
  }

  // "(3) name" gives the name a number, "(3)" is the name of that number.
  StringId name_of(std::string_view value, NumberMap<uint64_t, StringId>& names) {
    const size_t close = value.find(')');
    const auto number = value.starts_with('(') && close != value.npos ? number_of(value.substr(1, close - 1)) : std::nullopt;
    if (!number) return value == "???" ? profile::kNoText : builder_.intern(value);
    const std::string_view name = trim(value.substr(close + 1));
    if (!name.empty()) return names[*number] = name == "???" ? profile::kNoText : builder_.intern(name);
    auto known = names.find(*number);
    return known == names.end() ? untold_name(*number, names) : known->second;
  }

  // Some writers name only the functions that have costs, not those that are called: the cost is there all the same.
  StringId untold_name(uint64_t number, NumberMap<uint64_t, StringId>& names) {
    const std::string text = fmt::format("({})", number);
    builder_.profile().diagnostics.add("callgrind_untold_names", Severity::kError,
                                       "names that the file uses by their number and never tells are shown as that number", 1,
                                       fmt::format("{} in line {}", text, lines_.line_number()));
    return names[number] = builder_.intern(text);
  }

  Result<void> add_name(std::string_view key, std::string_view value) {
    if (key == "calls") return begin_call();
    if (key == "jump" || key == "jcnd") {
      is_jump_ = true;
      return {};
    }
    if (key == "ob") {
      object_ = name_of(value, objects_);
    } else if (key == "fl" || key == "fi" || key == "fe") {
      file_ = name_of(value, files_);
    } else if (key == "fn") {
      const StringId name = name_of(value, functions_);
      function_ = graph_.function({name, file_, object_});
    } else if (key == "cob") {
      called_object_ = name_of(value, objects_);
    } else if (key == "cfi" || key == "cfl") {
      called_file_ = name_of(value, files_);
    } else if (key == "cfn") {
      called_name_ = name_of(value, functions_);
    } else if (key == "jfi") {
      name_of(value, files_);  // may number a name
    } else if (key == "jfn") {
      name_of(value, functions_);
    } else {
      return fail(fmt::format("\"{}=\" is not known", key));
    }
    return {};
  }

  Result<void> begin_call() {
    if (!called_name_) return fail("calls= without cfn=");
    is_call_ = true;
    return {};
  }

  Result<void> set_position(size_t index, std::string_view word) {
    uint64_t& position = positions_[index];
    if (word == "*") return {};
    const bool is_relative = word.starts_with('+') || word.starts_with('-');
    const auto number = number_of(is_relative ? word.substr(1) : word);
    if (!number) return fail(fmt::format("\"{}\" is not a position", word));
    position = !is_relative ? *number : word[0] == '+' ? position + *number : position - *number;
    return {};
  }

  Result<void> add_costs(std::string_view line) {
    for (size_t i = 0; i < position_count_; ++i) TRY(set_position(i, take_word(line)));
    if (is_jump_) {
      is_jump_ = false;
      return {};
    }
    if (metrics_.empty()) return fail("costs before \"events:\"");
    if (function_ == CallGraph::kNone) return fail("costs before \"fn=\"");
    costs_.clear();
    while (!line.empty()) {
      const std::string_view word = take_word(line);
      const bool is_negative = word.starts_with('-');  // memory that a function gave back
      const auto number = number_of(is_negative ? word.substr(1) : word);
      if (!number) return fail(fmt::format("\"{}\" is not a cost", word));
      if (costs_.size() == events_.size()) return fail(fmt::format("more costs than the {} events", events_.size()));
      const int64_t cost = in_unit(*number, events_[costs_.size()].factor);
      costs_.push_back(is_negative ? -cost : cost);
    }
    add_to_graph();
    return {};
  }

  int64_t in_unit(uint64_t number, int64_t factor) {
    int64_t value = 0;
    if (number <= INT64_MAX && !__builtin_mul_overflow(static_cast<int64_t>(number), factor, &value)) return value;
    builder_.profile().diagnostics.add("value_overflow", Severity::kDataLoss,
                                       "sums of a stack's values left the range of 64 bits and stand at its limit");
    return INT64_MAX;
  }

  // What is called lies where the caller is unless cob= and cfi= say else, and each call says it anew.
  void add_to_graph() {
    const uint64_t line = line_position_ == kNoLine ? 0 : positions_[line_position_];
    const CallGraph::Place place{function_, file_, line <= UINT32_MAX ? static_cast<uint32_t>(line) : 0};
    if (!is_call_) {
      if (!costs_.empty()) total_ = add_clamped(total_, costs_[0]);
      return graph_.add_self(place, costs_);
    }
    const auto to = graph_.function({*called_name_, called_file_.value_or(file_), called_object_.value_or(object_)});
    graph_.add_call(place, to, costs_);
    is_call_ = false;
    called_name_.reset();
    called_file_.reset();
    called_object_.reset();
  }

  void check_total() {
    if (!told_total_ || in_unit(*told_total_, events_[0].factor) == total_) return;
    builder_.profile().diagnostics.add("callgrind_total", Severity::kNotice,
                                       "the costs of the lines are not the total that the file tells", 1,
                                       fmt::format("{} and {}", total_, *told_total_));
  }

  void add_thread() {
    if (pid_ == 0 || pid_ > INT32_MAX) return;
    std::string_view command = run().command;
    const std::string_view name = profile::base_name(take_word(command));
    const auto pid = static_cast<int32_t>(pid_);
    thread_ = builder_.add_thread(builder_.add_process(pid, name), pid, name);
  }

  static constexpr size_t kNoLine = ~size_t{0};

  LineReader lines_;
  profile::ProfileBuilder builder_;
  CallGraph graph_;
  std::vector<CallgrindEvent> events_;
  std::vector<profile::MetricId> metrics_;
  std::string event_line_;
  std::vector<std::string> long_names_;
  NumberMap<uint64_t, StringId> objects_, files_, functions_;
  std::array<uint64_t, 3> positions_{};
  size_t position_count_ = 1, line_position_ = 0;
  StringId object_ = profile::kNoText, file_ = profile::kNoText;
  CallGraph::FunctionRow function_ = CallGraph::kNone;
  std::optional<StringId> called_object_, called_file_, called_name_;
  bool is_call_ = false, is_jump_ = false, is_ours_ = false;
  std::vector<int64_t> costs_;
  int64_t total_ = 0;
  std::optional<uint64_t> told_total_;
  uint64_t pid_ = 0;
  profile::ThreadId thread_;
};

}  // namespace

Result<profile::Profile> read_callgrind(Input input, const ReadOptions& options) {
  auto stream = TRY(InputStream::open(std::move(input), options));
  return CallgrindReader(LineReader(std::move(stream))).read();
}

}  // namespace cprof::format
