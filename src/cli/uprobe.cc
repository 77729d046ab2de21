// cprof uprobe: the verb. Options, the target, where figures go; the run itself is uprobe_run.cc.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>

#include "analyze/filters.h"
#include "base/digit_groups.h"
#include "cli/live_target.h"
#include "cli/options.h"
#include "cli/text_layout.h"
#include "cli/uprobe_lines.h"
#include "cli/uprobe_run.h"
#include "cli/uprobe_screens.h"
#include "cli/verb.h"
#include "collect/perf/command.h"
#include "collect/perf/running_tasks.h"
#include "session/stop_signals.h"
#include "term/terminal.h"

namespace cprof::cli {
namespace {

constexpr size_t kUprobeSummaryColumns = 150, kMostDetails = 5, kMostCallersShown = 8, kMostStacksShown = 5, kMostFramesShown = 24;

struct UprobeArguments {
  TargetArguments target;
  std::vector<std::string> functions, outputs, debug_directories;
  double interval = 1, duration = 0;
  size_t rows = 20, most_functions = 2000;
  uint32_t rate_limit = 0;
  bool no_latency = false, callers = false, stack = false, histogram = false, children = false, uretprobe = false;
  bool json = false, reverse = false, batch = false, quiet = false;
  std::string least = "0", attach = "auto", sort, filter, demangle = "full";
};

void add_options(CLI::App& app, UprobeArguments& a) {
  a.target.add_to(app);
  app.add_option("-f,--func", a.functions, "functions: [FILE:]NAME with * and ?, by demangled or plain name; may be given more than once")
      ->allow_extra_args(false)->required();
  app.add_flag("--children", a.children, "what the target starts is traced as well; probes sit in every process that has the files then");
  app.add_flag("--no-latency", a.no_latency, "count calls, no more: half the cost");
  app.add_flag("--callers", a.callers, "who called, by name");
  app.add_flag("--stack", a.stack, "the stacks that told calls were made from: those of --min-duration, else all; Linux 5.17");
  app.add_flag("--histogram", a.histogram, "how the latencies are spread, a line a power of two");
  app.add_option("--min-duration", a.least, "only calls at least so long become slices, or lines where no -o is given: 5ms, 200us, 0.1");
  app.add_option("--rate-limit", a.rate_limit, "at most so many slices a second; all calls are counted all the same")->check(kAboveZero);
  app.add_option("--max-functions", a.most_functions, "more are refused")->check(kAboveZero);
  app.add_option("--attach", a.attach, "probes: many at once (Linux 6.6) or one by one; auto: at once where the kernel can")
      ->check(CLI::IsMember({"auto", "multi", "single"}));
  app.add_flag("--uretprobe", a.uretprobe, "see exits through replaced return addresses: an exception through a traced function ABORTS the target");
  app.add_option("-i,--interval", a.interval, "seconds between two pictures; default 1");
  app.add_option("-d,--duration", a.duration, "stop after this many seconds")->check(kSomeSeconds);
  app.add_option("-o,--output", a.outputs, "a file of the calls as slices, in any format; with --json any other name is where the lines go")
      ->allow_extra_args(false);
  app.add_flag("--json", a.json, "at the end a JSON object a line for each function");
  app.add_option("--sort", a.sort, "column to sort by; default total, or calls with --no-latency")->check(CLI::IsMember(uprobe_sort_keys()));
  app.add_flag("--reverse", a.reverse, "sort the other way round");
  app.add_option("--filter", a.filter, "only rows whose function or module this regular expression finds");
  app.add_option("--rows", a.rows, "rows of a table that is not live");
  app.add_option("--demangle", a.demangle, "names: full, short (no arguments) or none")->check(CLI::IsMember({"full", "short", "none"}));
  app.add_option("--debug-dir", a.debug_directories, "a directory like /usr/lib/debug to search before it; may be given more than once")
      ->allow_extra_args(false);
  app.add_flag("--batch", a.batch, "tables one below the other, on a terminal too");
  app.add_flag("-q,--quiet", a.quiet, "no summary");
}

struct UprobeOutputs {
  std::vector<session::Output> slices;
  std::string lines = "-";
};

Result<UprobeOutputs> outputs_of(const UprobeArguments& a) {
  UprobeOutputs outputs;
  OutputArguments known;
  bool has_lines = false;
  for (const std::string& path : a.outputs) {
    if (!a.json || format::find_by_path(path)) known.paths.push_back(path);
    else if (std::exchange(has_lines, true)) return fail("-o: lines go to one file");
    else outputs.lines = path;
  }
  outputs.slices = TRY(known.outputs());
  if (a.no_latency && !outputs.slices.empty()) return fail("-o: with --no-latency there are no slices to write; --json writes the counts");
  TRY(session::check_outputs(outputs.slices));
  return outputs;
}

symbolize::DemangleStyle style_of(const std::string& name) {
  return name == "short" ? symbolize::DemangleStyle::kShort : name == "none" ? symbolize::DemangleStyle::kNone : symbolize::DemangleStyle::kFull;
}

Result<UprobeOptions> run_options(const UprobeArguments& a, bool has_outputs) {
  if (!(a.interval >= 0.1 && a.interval <= 3600)) return fail("--interval: between 0.1 and 3600 seconds");
  const auto least = analyze::parse_duration(a.least);
  if (!least) return fail(fmt::format("--min-duration {}: takes a time, as 5ms, 200us or 0.1", a.least));
  if (a.no_latency && (a.uretprobe || a.histogram || a.stack || *least > 0))
    return fail("--no-latency leaves nothing for --uretprobe, --histogram, --stack and --min-duration");
  if (a.uretprobe && a.stack) return fail("--stack: not with --uretprobe, which replaces the return addresses that tell callers");
  if (a.children && a.target.command.empty() && a.target.pids.empty() && a.target.name.empty())
    return fail("--children: of a command, -p or -n; the other targets have theirs anyway, or threads only");
  UprobeOptions options;
  for (const std::string& text : a.functions) options.patterns.push_back(TRY(uprobe::FunctionPattern::parse(text)));
  options.trace.has_latency = !a.no_latency;
  options.trace.has_callers = a.callers;
  options.trace.has_calls = has_outputs || a.stack || *least > 0;
  options.trace.has_stacks = a.stack;
  options.trace.least_ns = *least;
  options.trace.rate_limit = a.rate_limit;
  options.trace.attach = a.attach == "multi" ? uprobe::Attach::kMulti : a.attach == "single" ? uprobe::Attach::kSingle : uprobe::Attach::kAuto;
  options.trace.by_return_address = a.uretprobe;
  options.trace.target = {.pids = a.target.pids, .tids = a.target.tids, .cgroup = a.target.cgroup, .children = a.children};
  options.style = style_of(a.demangle);
  options.places.debug_directories = a.debug_directories;
  options.most_functions = a.most_functions;
  options.duration_ns = static_cast<uint64_t>(a.duration * 1e9);
  return options;
}

Result<UprobeView> view_of(const UprobeArguments& a) {
  UprobeView view;
  const auto& keys = uprobe_sort_keys();
  const std::string sort = !a.sort.empty() ? a.sort : a.no_latency ? "calls" : "total";
  view.sort = static_cast<size_t>(std::ranges::find(keys, sort) - keys.begin());
  view.is_reversed = a.reverse;
  view.has_latency = !a.no_latency;
  if (!a.filter.empty()) view.filter = TRY(analyze::Pattern::compile(a.filter));
  return view;
}

void say_progress(size_t done, size_t all) {
  tell(fmt::format("\rcprof: {} of {} probes attached{}", done, all, done == all ? "\r\x1b[K" : ""));
  fflush(stderr);
}

std::string cost_text(const uprobe::Calibration& costs) {
  auto both = [](const uint64_t (&ns)[2]) {
    const auto [least, most] = std::minmax(ns[0], ns[1]);
    return fmt::format("{} to {}", duration_text(static_cast<double>(least)), duration_text(static_cast<double>(most)));
  };
  return fmt::format("a probed call takes {} longer; {} of it would be in its latency and is taken off", both(costs.pair_ns), both(costs.self_ns));
}

void say_callers(const std::vector<uprobe::Caller>& callers) {
  for (size_t c = 0; c < std::min(kMostCallersShown, callers.size()); c++)
    say(fmt::format("  {} from {}{}", right_aligned(grouped(static_cast<int64_t>(callers[c].calls)), 12), printable(caller_text(callers[c])),
                    callers[c].module.empty() ? "" : " in " + printable(callers[c].module)));
  if (callers.size() > kMostCallersShown) say(fmt::format("  {} from {} others", right_aligned("...", 12), callers.size() - kMostCallersShown));
}

void say_stacks(const std::vector<uprobe::CallStack>& stacks) {
  for (size_t i = 0; i < std::min(kMostStacksShown, stacks.size()); i++)
    for (const std::string& line : stack_lines(stacks[i], kMostFramesShown)) say(line);
  if (stacks.size() > kMostStacksShown) say(fmt::format("  {} and {} other stacks", right_aligned("...", 12), stacks.size() - kMostStacksShown));
}

// By function.
using StacksFound = std::map<uint32_t, std::vector<uprobe::CallStack>>;

const std::vector<uprobe::CallStack>& stacks_of(const StacksFound& stacks, uint32_t function) {
  static const std::vector<uprobe::CallStack> kNone;
  const auto found = stacks.find(function);
  return found == stacks.end() ? kNone : found->second;
}

void say_details(const UprobeRun& run, const StacksFound& stacks, const std::vector<UprobeRow>& rows, const UprobeArguments& a) {
  for (size_t i = 0; i < std::min(kMostDetails, rows.size()); i++) {
    say(fmt::format("{}:", printable(rows[i].function)));
    if (a.histogram)
      for (const std::string& line : histogram_lines(run.sums(rows[i].number).histogram, kUprobeSummaryColumns / 2)) say(line);
    if (a.callers) say_callers(run.callers(rows[i].number));
    if (a.stack) say_stacks(stacks_of(stacks, rows[i].number));
  }
}

void say_summary(const UprobeRun& run, const StacksFound& stacks, const UprobeView& view, const UprobeArguments& a) {
  const std::vector<UprobeRow> all = run.summary_rows();
  const std::vector<UprobeRow> rows = shown_functions(view, all);
  uint64_t calls = 0;
  for (const UprobeRow& row : all) calls += row.calls;
  const auto called = std::ranges::count_if(all, [](const UprobeRow& row) { return row.calls > 0; });
  say(fmt::format("cprof: {:.1f} s: {} calls of {} of {} functions, {} probes", run.seconds(), grouped(static_cast<int64_t>(calls)), called, all.size(),
                  grouped(static_cast<int64_t>(run.probes()))));
  if (view.has_latency) say("cprof: " + cost_text(run.calibration()));
  const UprobeTable table(view, kUprobeSummaryColumns, term::Style(false));
  if (!rows.empty()) say(table.header());
  for (size_t i = 0; i < std::min(a.rows, rows.size()); i++) say(table.line(rows[i]));
  if (rows.size() > a.rows) say(fmt::format("and {} more (--rows)", rows.size() - a.rows));
  if (a.histogram || a.callers || a.stack) say_details(run, stacks, rows, a);
}

// A line on stdout for each call that was long enough, where no file is asked for.
void print_call(const uprobe_call& call, const UprobeRun& run) {
  const std::string_view comm(call.comm, strnlen(call.comm, sizeof call.comm));
  constexpr std::string_view kEnds[] = {"", "  unwound", "  goes on", "  its thread has ended"};
  fmt::print("{:.6f} {} {}/{} {} {}{}\n", static_cast<double>(call.start_ns) / 1e9, printable(comm), call.pid, call.tid,
             duration_text(static_cast<double>(call.latency_ns)), printable(run.functions()[call.function].name), kEnds[call.end & 3]);
}

// What a run of this verb has besides the run: the command and what it printed, the outputs.
class UprobeSession {
 public:
  UprobeSession(UprobeArguments a, UprobeOptions options, UprobeView view, UprobeOutputs outputs)
      : a_(std::move(a)), view_(std::move(view)), outputs_(std::move(outputs)), run_(std::move(options)), slices_(a_.target.text()) {}

  Result<int> go() {
    is_live_ = !a_.json && !a_.batch && !prints_calls() && term::can_be_live();
    TRY(fork_command());
    if (auto named = name_target(); !named) return failed_target(named.error());
    const bool shows_progress = isatty(STDERR_FILENO) && !a_.quiet;
    TRY(run_.start([&](size_t done, size_t all) {
      if (shows_progress) say_progress(done, all);
    }));
    session::StopSignals signals(false);
    if (command_)
      if (auto released = command_->release(); !released) return failed_command(released.error());
    auto watched = watch(signals);
    const int status = end_command();
    auto stopped = run_.stop([&](const uprobe_call& call) { take(call); });
    if (held_) held_->put_out();
    TRY(stopped);
    run_.name_callers();
    join_stacks();
    TRY(write());
    if (!a_.quiet) say_summary(run_, stacks_, view_, a_);
    say_losses(run_.diagnostics(), "uprobe", Severity::kNotice);
    TRY(watched);
    return status;
  }

 private:
  bool prints_calls() const { return outputs_.slices.empty() && !a_.json && a_.least != "0"; }

  Result<void> fork_command() {
    if (a_.target.command.empty()) return {};
    if (is_live_) held_.emplace(TRY(HeldOutput::begin()));
    auto command = collect::Command::fork(a_.target.command);
    if (held_) held_->release();
    command_.emplace(TRY(std::move(command)));
    return {};
  }

  Result<void> name_target() {
    uprobe::TraceTarget& target = run_.target();
    if (command_) {
      run_.set_command(command_->pid());
      return run_.files().add_command(a_.target.command);
    }
    if (!a_.target.name.empty()) target.pids = TRY(collect::find_by_name(a_.target.name));
    TRY(collect::threads_of(target.pids));
    for (int32_t pid : target.pids) TRY(run_.files().add_process(pid));
    for (const event::Task& task : TRY(collect::tasks_of(target.tids))) TRY(run_.files().add_process(task.pid));
    return {};
  }

  // A command that is not there is run all the same: what is said, and the status, are those of every verb then.
  Result<int> failed_target(const Error& error) {
    if (command_ && error.code == ENOENT)
      if (auto released = command_->release(); !released) return failed_command(released.error());
    return std::unexpected(error);
  }

  int failed_command(const Error& error) {
    fail_with(error);
    return command_->status() < 0 ? kFailed : command_->status();
  }

  void take(const uprobe_call& call) {
    if (prints_calls()) print_call(call, run_);
    if (!prints_calls() || a_.stack) slices_.add(call);
  }

  void join_stacks() {
    if (!run_.stacks()) return;
    Diagnostics losses;
    stacks_ = slices_.join(*run_.stacks(), losses);
    run_.add_losses(losses);
  }

  Result<void> watch(const session::StopSignals& signals) {
    auto with = [&](UprobeScreen& screen) {
      return run_.watch({screen, [&] { return command_ && command_->has_ended(); }, [&](const uprobe_call& call) { take(call); }});
    };
    const auto interval_ns = static_cast<uint64_t>(a_.interval * 1e9);
    if (is_live_) {
      UprobeLive live(TRY(term::Terminal::open()), view_, interval_ns, a_.target.text(), [&](uint32_t function) { return run_.sums(function).histogram; });
      return with(live);
    }
    UprobeBatch batch(view_, a_.batch ? a_.rows : 0, interval_ns, [&] { return signals.requested(); });
    return with(batch);
  }

  // One that still runs is asked to end.
  int end_command() {
    if (!command_) return kDone;
    if (!command_->has_ended()) kill(command_->pid(), SIGTERM);
    for (int i = 0; i < 200 && !command_->has_ended(); i++) usleep(10'000);
    return command_->status() < 0 ? kDone : command_->status();
  }

  Result<void> write() {
    if (!outputs_.slices.empty()) TRY(session::write_outputs(slices_.take(run_.functions(), run_.calibration(), run_.diagnostics()), outputs_.slices, {}, say_output_losses));
    if (!a_.json) return fflush(stdout) == 0 ? Result<void>() : fail_errno("stdout");
    OutputFile file = TRY(OutputFile::create(outputs_.lines));
    for (uint32_t i = 0; i < run_.functions().size(); i++) {
      const std::string module = run_.module_of(i);
      const uprobe::FunctionSums sums = run_.sums(i);
      TRY(file.write(uprobe_json_line({.function = run_.functions()[i].name, .module = module, .sums = sums, .has_latency = !a_.no_latency,
                                       .callers = run_.callers(i), .has_callers = a_.callers,
                                       .stacks = stacks_of(stacks_, i), .has_stacks = a_.stack})));
    }
    return file.commit();
  }

  UprobeArguments a_;
  UprobeView view_;
  UprobeOutputs outputs_;
  UprobeRun run_;
  uprobe::CallSlices slices_;
  StacksFound stacks_;
  bool is_live_ = false;
  std::optional<collect::Command> command_;
  std::optional<HeldOutput> held_;
};

}  // namespace

int uprobe_main(std::vector<std::string> arguments) {
  UprobeArguments a;
  CLI::App app("Calls of functions: how many, how long, from where.", "cprof uprobe");
  add_options(app, a);
  if (auto status = a.target.parse(app, std::move(arguments))) return *status;
  auto outputs = outputs_of(a);
  if (!outputs) return wrong_usage(outputs.error());
  auto options = run_options(a, !outputs->slices.empty());
  if (!options) return wrong_usage(options.error());
  auto view = view_of(a);
  if (!view) return wrong_usage(in_context("--filter", view.error()));
  if (a.uretprobe) say("cprof: --uretprobe: an exception or longjmp through a traced function aborts the target");
  UprobeSession run(std::move(a), std::move(*options), std::move(*view), std::move(*outputs));
  auto status = run.go();
  return status ? *status : fail_with(status.error());
}

}  // namespace cprof::cli
