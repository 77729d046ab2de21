// Lines of two counts ("frame;frame 12 30", a comparison) are known only at the end of the file: every line has two, and no
// stack comes twice, as difffolded.pl prints each of its stacks once. Until a line shows otherwise they are held back as
// they are, since a frame's name may end in a number.
//
// One pass, a line at a time. A line's stack is first looked up as a whole by a keyed 128-bit hash, so that a stack that
// comes again (most do) costs neither splitting nor interning; memory grows with the different stacks, not with lines.
#include <fmt/format.h>

#include <cmath>

#include "base/text_hash.h"
#include "format/folded/folded.h"
#include "format/frame_text.h"
#include "format/line_reader.h"
#include "format/words.h"
#include "profile/builder.h"

namespace cprof::format {
namespace {

using profile::FrameKind;

// A stack is known by its hash.
struct Total {
  TextHash key;
  profile::CallSiteId site;
  int64_t value = 0;
};

struct Count {
  int64_t value = 0;
  bool is_rounded = false;
};

// A whole number, or a decimal that is rounded.
std::optional<Count> parse_count(std::string_view text) {
  Count count;
  if (text.starts_with('+')) text.remove_prefix(1);
  if (parse_number(text, count.value)) return count;
  double value = 0;
  if (!parse_number(text, value) || !(std::fabs(value) < 9.2e18)) return std::nullopt;
  count.value = std::llround(value);
  count.is_rounded = static_cast<double>(count.value) != value;
  return count;
}

struct StackLine {
  std::string_view stack;
  Count count;
};

std::optional<StackLine> split_line(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
  size_t space = line.find_last_of(" \t");
  if (space == line.npos || space == 0) return std::nullopt;
  auto count = parse_count(line.substr(space + 1));
  if (!count) return std::nullopt;
  std::string_view stack = line.substr(0, space);
  while (!stack.empty() && (stack.back() == ' ' || stack.back() == '\t')) stack.remove_suffix(1);
  if (stack.find_first_not_of(';') == stack.npos) return std::nullopt;
  return StackLine{stack, *count};
}

// The stack and the first of two counts, when the stack of a line itself ends in one.
std::optional<StackLine> first_of_two(const StackLine& line) {
  const size_t space = line.stack.rfind(' ');
  if (line.count.is_rounded || line.count.value < 0 || space == line.stack.npos || space + 1 == line.stack.size()) return std::nullopt;
  if (line.stack.find_first_not_of("0123456789", space + 1) != line.stack.npos) return std::nullopt;
  auto first = split_line(line.stack);
  return first && !first->count.is_rounded ? first : std::nullopt;
}

bool is_comment(std::string_view line) { return line.starts_with('#') && !split_line(line); }

FrameKind take_kind(std::string_view& name) {
  FrameKind kind = FrameKind::kUser;
  if (name.ends_with("_[k]")) kind = FrameKind::kKernel;
  if (name.ends_with("_[j]")) kind = FrameKind::kJit;
  if (kind != FrameKind::kUser && name.size() > 4)
    name.remove_suffix(4);
  else
    kind = name == "[unknown]" ? FrameKind::kUnknown : FrameKind::kUser;
  return kind;
}

class FoldedReader {
 public:
  explicit FoldedReader(LineReader lines) : lines_(std::move(lines)) {
    metric_ = builder_.add_metric("samples", "count");
    builder_.profile().run.default_metric = builder_.profile().metrics[0].name;
    builder_.profile().run.source = lines_.name();
  }

  Result<profile::Profile> read() {
    while (auto line = TRY(lines_.next())) add_line(*line);
    if (malformed_ > stacks_read_ && stacks_read_ > 0) return fail(no_folded_file());
    if (!held_.empty()) return take_pairs();
    if (totals_.empty()) return fail(no_stacks());
    for (const auto& [key, site, value] : totals_) add_value(site, metric_, value);
    return take();
  }

 private:
  void add_line(std::string_view line) {
    if (line.find_first_not_of(" \t") == line.npos) return;
    auto split = split_line(line);
    if (!split) {
      if (!line.starts_with('#')) note_malformed(line);
      return;
    }
    ++stacks_read_;
    if (may_be_pairs_)
      if (const auto first = first_of_two(*split); first && hold(*split, first->stack)) return;
    release();
    add_stack(*split);
  }

  // As it stands, the first count as a part of the stack. False: its stack was there before.
  bool hold(const StackLine& line, std::string_view stack) {
    const TextHash key = hasher_(stack);
    const size_t before = held_.size();
    stacks_.find_or_add(key.a, [&](uint32_t r) { return held_[r].key == key; }, [&] {
      held_.push_back({key, std::string(line.stack), line.count.value});
      return static_cast<uint32_t>(held_.size() - 1);
    });
    return held_.size() > before;
  }

  void release() {
    may_be_pairs_ = false;
    if (held_.empty()) return;
    stacks_ = {};
    const std::vector<Held> held = std::exchange(held_, {});
    for (const Held& line : held) add_stack({line.stack, {line.count, false}});
  }

  void add_stack(const StackLine& line) {
    if (line.count.is_rounded)
      builder_.profile().diagnostics.add("folded_rounded_counts", Severity::kError,
                                         "counts with decimals were rounded to whole numbers");
    const TextHash key = hasher_(line.stack);
    const uint32_t row = stacks_.find_or_add(key.a, [&](uint32_t r) { return totals_[r].key == key; }, [&] {
      totals_.push_back({key, intern_stack(line.stack), 0});
      return static_cast<uint32_t>(totals_.size() - 1);
    });
    add_to(totals_[row].value, line.count.value);
  }

  void add_to(int64_t& total, int64_t value) {
    if (!__builtin_add_overflow(total, value, &total)) return;
    total = value < 0 ? INT64_MIN : INT64_MAX;
    builder_.profile().diagnostics.add("value_overflow", Severity::kDataLoss,
                                       "sums of a stack's values left the range of 64 bits and stand at its limit");
  }

  void add_value(profile::CallSiteId site, profile::MetricId metric, int64_t value) {
    any_value_ |= value != 0;
    builder_.add_aggregate({.site = site, .metric = metric, .value = value});
  }

  Result<profile::Profile> take() {
    if (any_value_) return builder_.take();
    const bool is_rounded = builder_.profile().diagnostics.count("folded_rounded_counts") > 0;
    return fail(fmt::format("{}: total weight is 0{}", lines_.name(),
                            is_rounded ? ": all counts are below 0.5, and counts are whole numbers" : ""));
  }

  Result<profile::Profile> take_pairs() {
    profile::Profile& profile = builder_.profile();
    profile.metrics[0].name = builder_.intern("before");
    const profile::MetricId after = builder_.add_metric("after", "count");
    profile.run.default_metric = profile.metrics[after.index()].name;
    for (const Held& line : held_) {
      const StackLine first = *split_line(line.stack);
      const profile::CallSiteId site = intern_stack(first.stack);
      add_value(site, metric_, first.count.value);
      add_value(site, after, line.count);
    }
    return take();
  }

  profile::CallSiteId intern_stack(std::string_view stack) {
    path_.clear();
    while (!stack.empty()) {
      size_t end = std::min(stack.find(';'), stack.size());
      std::string_view name = stack.substr(0, end);
      stack.remove_prefix(std::min(end + 1, stack.size()));
      if (name.empty()) continue;  // "a;;b"
      StringId text = builder_.intern(name);
      if (text.index() >= locations_.size()) locations_.resize(text.index() + 1);
      if (!locations_[text.index()].valid()) locations_[text.index()] = new_location(name);
      path_.push_back(locations_[text.index()]);
    }
    return builder_.stack(path_);
  }

  profile::LocationId new_location(std::string_view name) {
    FrameKind kind = take_kind(name);
    StringId text = builder_.intern(name);
    profile::Line line{builder_.function({.name = text, .system_name = text})};
    return builder_.named_location({}, kind, {&line, 1});
  }

  void note_malformed(std::string_view line) {
    if (!malformed_) first_malformed_ = lines_.line_number();
    ++malformed_;
    builder_.profile().diagnostics.add("folded_malformed_lines", Severity::kDataLoss,
                                       "lines that do not end in a space and a number were left out", 1,
                                       fmt::format("line {}: {}", lines_.line_number(), line.substr(0, 60)));
  }

  // Text of another kind, some of whose lines end in a number.
  std::string no_folded_file() const {
    return fmt::format("{}: not folded stacks: {} of {} lines are not \"frame;frame count\", as line {}", lines_.name(), malformed_,
                       malformed_ + stacks_read_, first_malformed_);
  }

  std::string no_stacks() const {
    if (malformed_)
      return fmt::format("{}: no stacks: line {} is not \"frame;frame count\"", lines_.name(), first_malformed_);
    return fmt::format("{}: no stacks", lines_.name());
  }

  struct Held {
    TextHash key;       // of the stack without it
    std::string stack;  // with the first count
    int64_t count = 0;  // the second one
  };

  LineReader lines_;
  profile::ProfileBuilder builder_;
  profile::MetricId metric_;
  TextHasher hasher_;
  bool may_be_pairs_ = true, any_value_ = false;
  std::vector<Held> held_;     // lines of two counts
  profile::RowIndex stacks_;   // rows of totals_, of held_ while lines are held
  std::vector<Total> totals_;  // in the order of the file
  std::vector<profile::LocationId> locations_;                        // by the StringId of the frame's text
  std::vector<profile::LocationId> path_;
  uint64_t malformed_ = 0, first_malformed_ = 0, stacks_read_ = 0;
};

}  // namespace

// The first lines all end in a number, and at least one has a ';' or all are a single word and a number.
bool sniff_folded(std::span<const std::byte> head) {
  constexpr int kLines = 8;
  constexpr size_t kLongLine = 16 * 1024;  // a stack so deep that the head ends inside it
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.find('\0') != text.npos) return false;
  int stacks = 0;
  bool any_frames = false, all_words = true;
  while (!text.empty() && stacks < kLines) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (end == std::string_view::npos && line.size() > kLongLine) return any_frames || line.find(';') != line.npos;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == line.npos || is_comment(line)) continue;
    auto split = split_line(line);
    if (!split && end == std::string_view::npos && stacks > 0) break;  // the head ends inside this line
    if (!split || line.front() == ' ' || line.front() == '\t') return false;
    ++stacks;
    any_frames |= split->stack.find(';') != split->stack.npos;
    all_words &= split->stack.find(' ') == split->stack.npos && !split->stack.ends_with(':');
  }
  return stacks > 0 && (any_frames || all_words);
}

Result<profile::Profile> read_folded(Input input, const ReadOptions& options) {
  auto stream = TRY(InputStream::open(std::move(input), options));
  return FoldedReader(LineReader(std::move(stream))).read();
}

}  // namespace cprof::format
