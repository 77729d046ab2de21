// cprof top: the verb. Samples the target and shows, again and again, where its last seconds went.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "analyze/filters.h"
#include "base/clock.h"
#include "cli/live_target.h"
#include "cli/options.h"
#include "cli/text_layout.h"
#include "cli/top_view.h"
#include "cli/verb.h"
#include "session/live.h"
#include "session/stop_signals.h"
#include "term/line_input.h"
#include "term/scroller.h"
#include "term/style.h"
#include "term/terminal.h"

namespace cprof::cli {
namespace {

using term::Key;

constexpr int kPollMs = 50;
constexpr size_t kBatchColumns = 120;

struct Arguments {
  TargetArguments target;
  FilterArguments filters;
  NamingArguments naming;
  double interval = 2, duration = 0, window = 10;
  uint64_t count = 0, freq = 0, rows = 20;
  bool no_kernel = false, no_inherit = false, batch = false;
  std::string backend = "auto", unwind = "auto", show = "functions";
  std::vector<std::string> events;
};

void add_options(CLI::App& app, Arguments& a) {
  a.target.add_to(app);
  app.add_option("-i,--interval", a.interval, "seconds between two pictures; default 2");
  app.add_option("--window", a.window, "a picture is of the last SECONDS; default 10");
  app.add_option("--count", a.count, "stop after so many pictures")->check(kAboveZero);
  app.add_option("-d,--duration", a.duration, "stop after this many seconds")->check(kSomeSeconds);
  app.add_option("-F,--freq", a.freq, "samples per second of CPU; default 999 for a command, 199 for what runs already");
  app.add_option("-e,--event", a.events, "event to sample; default cycles where the machine has them, else cpu-clock")->allow_extra_args(false);
  app.add_option("--backend", a.backend, "how to sample: in the kernel (bpf) or by perf events; auto: bpf where it can")
      ->check(CLI::IsMember({"auto", "bpf", "perf"}));
  app.add_option("--unwind", a.unwind, "user stacks by unwind tables or by frame pointers")->check(CLI::IsMember({"auto", "dwarf", "fp"}));
  app.add_flag("--no-kernel", a.no_kernel, "user code only");
  app.add_flag("--no-inherit", a.no_inherit, "not the children and threads that start later");
  app.add_option("--show", a.show, "functions, stacks, tree or threads")->check(CLI::IsMember({"functions", "stacks", "tree", "threads"}));
  app.add_option("--rows", a.rows, "rows of a picture that is not live");
  app.add_flag("--batch", a.batch, "pictures one below the other, on a terminal too");
  a.filters.add_to(app);
  a.naming.add_to(app);
}

Result<session::RecordOptions> to_session(const Arguments& a) {
  if (!(a.interval >= 0.1 && a.interval <= 3600)) return fail("--interval: between 0.1 and 3600 seconds");
  if (!(a.window >= 1 && a.window <= 3600)) return fail("--window: between 1 and 3600 seconds");
  session::RecordOptions options;
  options.target = {.command = a.target.command, .pids = a.target.pids, .tids = a.target.tids, .name = a.target.name,
                    .whole_machine = a.target.all, .cgroup = a.target.cgroup, .container = {}};
  options.events = a.events;
  options.backend = a.backend == "bpf" ? session::Backend::kBpf : a.backend == "perf" ? session::Backend::kPerf : session::Backend::kAuto;
  options.freq_hz = a.freq;
  options.frame_pointers = a.unwind == "fp";
  options.kernel = !a.no_kernel;
  options.inherit = !a.no_inherit;
  options.window_s = a.window;
  TRY(a.naming.apply_to(options.pipeline));
  return options;
}

TopPane pane_of(std::string_view name) {
  for (size_t i = 0; i < static_cast<size_t>(TopPane::kCount); i++)
    if (name_of(static_cast<TopPane>(i)) == name) return static_cast<TopPane>(i);
  return TopPane::kFunctions;
}

// A filter for which there is nothing now may find something in the next picture.
TopLines picture(const profile::Profile& profile, const analyze::Filters& filters, TopPane pane, size_t columns) {
  auto lines = [&]() -> Result<TopLines> {
    if (filters.empty() || profile.samples.empty()) return top_lines(profile, pane, columns);
    const profile::Profile left = TRY(analyze::filtered(profile, filters));
    return top_lines(left, pane, columns);
  }();
  if (!lines) return {.title = "no samples: " + printable(lines.error().message), .header = {}, .rows = {}};
  if (lines->title.empty()) lines->title = "no samples";
  return std::move(*lines);
}

// Where pictures go. wait() returns early when the user did something; false: it was enough.
class Screen {
 public:
  virtual ~Screen() = default;
  virtual bool wait(int timeout_ms) = 0;
  virtual Result<void> show(profile::Profile profile, double seconds) = 0;
  virtual uint64_t interval_ns() const = 0;
};

class BatchScreen final : public Screen {
 public:
  BatchScreen(const Arguments& a, analyze::Filters filters, const session::StopSignals& signals)
      : filters_(std::move(filters)), signals_(signals), pane_(pane_of(a.show)), rows_(a.rows), interval_ns_(static_cast<uint64_t>(a.interval * 1e9)) {}

  bool wait(int) override { return !signals_.requested(); }
  uint64_t interval_ns() const override { return interval_ns_; }

  Result<void> show(profile::Profile profile, double seconds) override {
    const TopLines lines = picture(profile, filters_, pane_, kBatchColumns);
    std::string out = fmt::format("after {:.1f} s: {}\n", seconds, lines.title);
    for (const std::string& line : lines.header) out += line + "\n";
    for (size_t i = 0; i < std::min<size_t>(rows_, lines.rows.size()); i++) out += lines.rows[i] + "\n";
    fmt::print("{}\n", out);
    return fflush(stdout) == 0 ? Result<void>() : fail_errno("stdout");
  }

 private:
  analyze::Filters filters_;
  const session::StopSignals& signals_;
  TopPane pane_;
  size_t rows_;
  uint64_t interval_ns_;
};

constexpr const char* kTopHelp[] = {
    "f s c t              functions, stacks, call tree, threads; Tab is the next of them",
    "/                    only stacks with a frame that a regular expression finds",
    "p                    only this process, by name or number",
    "n                    only threads of this name or number",
    "space                pause, and go on",
    "+ -                  longer, shorter between two pictures",
    "up, down, page keys  scroll; home is the top",
    "h or ?               this text",
    "q                    quit",
    "",
    "self: in the function itself. total: in what it calls, too. A picture is of the last seconds (--window).",
};

class LiveScreen final : public Screen {
 public:
  LiveScreen(std::unique_ptr<term::Terminal> terminal, const Arguments& a, analyze::Filters filters)
      : terminal_(std::move(terminal)), style_(term::wants_colour(STDOUT_FILENO)), target_(printable(a.target.text())),
        filters_(std::move(filters)), pane_(pane_of(a.show)), interval_ns_(static_cast<uint64_t>(a.interval * 1e9)), window_(a.window) {
    draw();
  }

  bool wait(int timeout_ms) override {
    bool has_changed = false;
    for (term::Event event = terminal_->wait(timeout_ms); event.key != Key::kNone; event = terminal_->wait(0)) {
      if (!take(event)) return false;
      has_changed = true;
    }
    if (has_changed) draw();
    return !terminal_->stop_requested();
  }

  Result<void> show(profile::Profile profile, double seconds) override {
    if (is_paused_) return {};
    profile_ = std::move(profile);
    seconds_ = seconds;
    draw();
    return {};
  }
  uint64_t interval_ns() const override { return interval_ns_; }

 private:
  bool take(const term::Event& event) {
    if (event.key == Key::kClosed) return false;
    if (input_.is_active()) {
      input_.take(event);
      if (!input_.is_active() && event.key == Key::kEnter) apply_input();
      return true;
    }
    if (event.key == Key::kCharacter) return take_command(event.character);
    if (event.key == Key::kEscape) shows_help_ = false;
    else scroller_.take(event.key);
    return true;
  }

  bool take_command(char character) {
    constexpr std::string_view kPanes = "fsct", kPrompts = "/pn";
    if (const size_t pane = kPanes.find(character); pane != kPanes.npos) choose(static_cast<TopPane>(pane));
    if (kPrompts.find(character) != kPrompts.npos) {
      asks_for_ = character;
      error_.clear();
      input_.begin(answers_[kPrompts.find(character)]);
    }
    switch (character) {
      case 'q': return false;
      case '\t': choose(static_cast<TopPane>((static_cast<size_t>(pane_) + 1) % static_cast<size_t>(TopPane::kCount))); break;
      case ' ': is_paused_ = !is_paused_; break;
      case '+': interval_ns_ = std::min<uint64_t>(interval_ns_ * 2, 60 * kSecondNs); break;
      case '-': interval_ns_ = std::max<uint64_t>(interval_ns_ / 2, kSecondNs / 4); break;
      case 'h':
      case '?': shows_help_ = !shows_help_; break;
      default: break;
    }
    return true;
  }

  void choose(TopPane pane) {
    pane_ = pane;
    scroller_ = {};
  }

  // What cannot be understood leaves the filter as it was.
  void apply_input() {
    const std::string& text = input_.text();
    error_.clear();
    if (asks_for_ == '/') {
      auto pattern = analyze::Pattern::compile(text);
      if (!pattern) {
        error_ = pattern.error().message;
        return;
      }
      filters_.focus.clear();
      if (!text.empty()) filters_.focus.push_back(std::move(*pattern));
    } else {
      auto& names = asks_for_ == 'p' ? filters_.processes : filters_.threads;
      names.clear();
      if (!text.empty()) names.push_back(text);
    }
    answers_[std::string_view("/pn").find(asks_for_)] = text;
    scroller_ = {};
  }

  std::string top_line(const TopLines& lines) const {
    const std::string what = seconds_ == 0        ? "first picture is on its way"
                             : lines.rows.empty() ? lines.title
                                                  : fmt::format("{} in the last {:.0f} s", lines.title, std::min(seconds_, window_));
    return fmt::format("cprof top {}{}  {}: {}", target_, is_paused_ ? "  PAUSED" : "", name_of(pane_), what);
  }

  std::string bottom_line() const {
    constexpr std::string_view kNames[] = {"frame", "process", "thread"};
    const size_t which = std::string_view("/pn").find(asks_for_);
    if (input_.is_active()) return fmt::format("{}: {}_", kNames[which], input_.text());
    if (!error_.empty()) return error_;
    std::string filters;
    for (size_t i = 0; i < 3; i++)
      if (!answers_[i].empty()) filters += fmt::format("  {}: {}", kNames[i], answers_[i]);
    return "q quit  space pause  f functions  s stacks  c tree  t threads  / p n filter  h help" + filters;
  }

  void draw() {
    const auto [columns, height] = terminal_->size();
    const TopLines shown = picture(profile_, filters_, pane_, columns);
    std::vector<std::string> screen = {style_.title(shortened(top_line(shown), columns))};
    if (shows_help_) {
      for (const char* line : kTopHelp) screen.push_back(shortened(line, columns));
    } else {
      for (const std::string& line : shown.header) screen.push_back(style_.header(padded(shortened(line, columns), columns)));
      scroller_.fit(shown.rows.size(), height > screen.size() + 1 ? height - screen.size() - 1 : 1);
      for (size_t i = scroller_.first(); i < scroller_.end(); i++) screen.push_back(shortened(shown.rows[i], columns));
    }
    screen.resize(height > 0 ? height - 1 : 0);
    screen.push_back(style_.faint(shortened(printable(bottom_line()), columns)));
    terminal_->draw(std::move(screen));
  }

  std::unique_ptr<term::Terminal> terminal_;
  term::Style style_;
  std::string target_;
  analyze::Filters filters_;
  TopPane pane_;
  uint64_t interval_ns_;
  double window_, seconds_ = 0;
  profile::Profile profile_;
  term::LineInput input_;
  term::Scroller scroller_;
  char asks_for_ = '/';
  std::string answers_[3], error_;
  bool is_paused_ = false, shows_help_ = false;
};

// Pictures until the target ends, the time is over or the user has seen enough.
Result<void> look(session::LiveRecording& recording, Screen& screen, const Arguments& a) {
  const uint64_t start_ns = monotonic_ns(), end_ns = a.duration > 0 ? start_ns + static_cast<uint64_t>(a.duration * 1e9) : ~uint64_t{0};
  uint64_t next_ns = start_ns + screen.interval_ns(), shown = 0;
  auto show = [&]() -> Result<void> {
    shown++;
    return screen.show(recording.look(), static_cast<double>(monotonic_ns() - start_ns) / 1e9);
  };
  bool more = true;
  while (more && monotonic_ns() < end_ns) {
    more = TRY(recording.poll(kPollMs));
    if (!screen.wait(0)) return {};
    const uint64_t now = monotonic_ns();
    next_ns = std::min(next_ns, now + screen.interval_ns());
    if (now < next_ns) continue;
    TRY(show());
    next_ns = std::max(next_ns + screen.interval_ns(), monotonic_ns());
    if (a.count && shown >= a.count) return {};
  }
  return show();
}

// held: what a command prints meanwhile.
Result<int> watch(session::LiveRecording& recording, const Arguments& a, const analyze::Filters& filters, bool is_live,
                  std::optional<HeldOutput>& held) {
  if (!recording.why_not_bpf().empty()) say(fmt::format("cprof: top samples with perf events: {}", recording.why_not_bpf()));
  session::StopSignals signals(false);
  if (auto started = recording.start(); !started) {
    if (recording.command_status() < 0) return std::unexpected(started.error());
    fail_with(started.error());
    return recording.command_status();
  }
  Result<void> looked;
  if (is_live) {
    LiveScreen screen(TRY(term::Terminal::open()), a, filters);
    looked = look(recording, screen, a);
  } else {
    BatchScreen screen(a, filters, signals);
    looked = look(recording, screen, a);
  }
  auto finished = recording.finish();
  if (held) held->put_out();
  say_losses(recording.diagnostics(), "top", Severity::kError);
  TRY(looked);
  TRY(finished);
  return a.target.command.empty() ? kDone : std::max(kDone, recording.command_status());
}

Result<int> run(const Arguments& a, const session::RecordOptions& options, const analyze::Filters& filters) {
  const bool is_live = !a.batch && term::can_be_live();
  std::optional<HeldOutput> held;
  if (is_live && !a.target.command.empty()) held.emplace(TRY(HeldOutput::begin()));
  auto recording = session::LiveRecording::make(options);
  if (held) held->release();
  if (!recording) return std::unexpected(recording.error());
  return watch(**recording, a, filters, is_live, held);
}

}  // namespace

int top_main(std::vector<std::string> arguments) {
  Arguments a;
  CLI::App app("The hottest functions and stacks of the last seconds, live.", "cprof top");
  add_options(app, a);
  if (auto status = a.target.parse(app, std::move(arguments))) return *status;
  auto filters = a.filters.filters();
  if (!filters) return wrong_usage(filters.error());
  auto options = to_session(a);
  if (!options) return wrong_usage(options.error());
  auto status = run(a, *options, *filters);
  return status ? *status : fail_with(status.error());
}

}  // namespace cprof::cli
