// cprof cpustat: the verb. Options, the target, where figures go; the run itself is cpustat_run.cc.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "cli/cpustat_lines.h"
#include "cli/cpustat_run.h"
#include "cli/cpustat_screens.h"
#include "cli/live_target.h"
#include "cli/options.h"
#include "cli/text_layout.h"
#include "cli/verb.h"
#include "collect/perf/command.h"
#include "collect/perf/running_tasks.h"
#include "cpustat/counter_tracks.h"
#include "session/stop_signals.h"
#include "term/terminal.h"

namespace cprof::cli {
namespace {

constexpr size_t kSummaryRows = 10, kSummaryColumns = 110;
constexpr const char* kCounterFormats[] = {"cprof", "pftrace", "chrome", "html"};

struct Arguments {
  TargetArguments target;
  double interval = 1, duration = 0;
  uint64_t count = 0;
  size_t rows = 40;
  bool json = false, csv = false, reverse = false, busy = false, no_inherit = false, quiet = false, batch = false;
  std::string by = "thread", sort = "cpu", filter, backend = "auto";
  std::vector<std::string> outputs;
};

void add_options(CLI::App& app, Arguments& a) {
  a.target.add_to(app);
  app.add_option("-i,--interval", a.interval, "seconds between two looks; default 1");
  app.add_option("--count", a.count, "stop after so many intervals")->check(kAboveZero);
  app.add_option("-d,--duration", a.duration, "stop after this many seconds")->check(kSomeSeconds);
  app.add_flag("--no-inherit", a.no_inherit, "not the children of the target's processes");
  app.add_option("--backend", a.backend, "programs in the kernel (bpf), or looking at /proc, which tells less; auto: bpf where it can")
      ->check(CLI::IsMember({"auto", "bpf", "proc"}));
  app.add_flag("--json", a.json, "a JSON object a line for each thread and interval");
  app.add_flag("--csv", a.csv, "the same as CSV");
  app.add_option("-o,--output", a.outputs, "a recording with counter tracks (.cprof, .pftrace, .trace.json, .html); with --json or --csv "
                 "any other name is where the lines go")
      ->allow_extra_args(false);
  app.add_option("--by", a.by, "rows: thread or process")->check(CLI::IsMember({"thread", "process"}));
  app.add_option("--sort", a.sort, "column to sort by")->check(CLI::IsMember(cpustat_sort_keys()));
  app.add_flag("--reverse", a.reverse, "sort the other way round");
  app.add_flag("--busy", a.busy, "only threads that were on a CPU in the interval");
  app.add_option("--filter", a.filter, "only rows whose pid, tid or name this regular expression finds");
  app.add_option("--rows", a.rows, "rows of a table that is not live");
  app.add_flag("--batch", a.batch, "tables one below the other, on a terminal too");
  app.add_flag("-q,--quiet", a.quiet, "no summary");
}

// The target is set before it is asked for: then a command is only forked.
Result<cpustat::Target> target_of(const Arguments& a, const std::optional<collect::Command>& command) {
  cpustat::Target target;
  target.inherit = !a.no_inherit;
  target.whole_machine = a.target.all;
  target.cgroup = a.target.cgroup;
  target.pids = a.target.pids;
  target.tids = a.target.tids;
  if (command) target.pids = {command->pid()};
  if (!a.target.name.empty()) target.pids = TRY(collect::find_by_name(a.target.name));
  TRY(collect::threads_of(target.pids));
  TRY(collect::tasks_of(target.tids));
  return target;
}

Result<std::unique_ptr<cpustat::ThreadSource>> make_source(const Arguments& a, const cpustat::Target& target) {
  if (a.backend == "proc") return cpustat::make_proc_source(target);
  auto source = cpustat::make_bpf_source(target);
  if (source || a.backend == "bpf") return source;
  say(fmt::format("cprof: cpustat looks at /proc, waits are estimated: {}", source.error().message));
  return cpustat::make_proc_source(target);
}

// Lines for programs: to stdout or to a file.
class Lines {
 public:
  static Result<Lines> open(const Arguments& a, const std::string& path, const TableView& view) {
    Lines lines(a.csv, view);
    if (!a.json && !a.csv) return lines;
    lines.file_ = TRY(OutputFile::create(path));
    if (a.csv) TRY(lines.file_->write(cpustat_csv_header()));
    return lines;
  }
  Result<void> add(const cpustat::Interval& interval) {
    if (!file_) return {};
    for (const cpustat::Row& row : shown_rows(view_, interval.rows))
      TRY(file_->write(is_csv_ ? cpustat_csv_line(interval, row) : cpustat_json_line(interval, row)));
    return file_->flush();
  }
  Result<void> finish() { return file_ ? file_->commit() : Result<void>(); }

 private:
  Lines(bool is_csv, const TableView& view) : is_csv_(is_csv), view_(view) {}
  bool is_csv_;
  TableView view_;
  std::optional<OutputFile> file_;
};

struct Outputs {
  std::vector<session::Output> recordings;
  std::string lines = "-";
};

Result<Outputs> outputs_of(const Arguments& a) {
  Outputs outputs;
  bool has_lines = false;
  for (const std::string& path : a.outputs) {
    const format::FormatInfo* info = format::find_by_path(path);
    const bool holds_counters = info && std::ranges::find(kCounterFormats, info->name) != std::end(kCounterFormats);
    if (holds_counters) {
      outputs.recordings.push_back({path, info});
    } else if (!a.json && !a.csv) {
      return fail(fmt::format("-o {}: counters go into .cprof, .pftrace, .trace.json and .html; lines need --json or --csv", path));
    } else if (std::exchange(has_lines, true)) {
      return fail("-o: lines go to one file");
    } else {
      outputs.lines = path;
    }
  }
  TRY(session::check_outputs(outputs.recordings));
  return outputs;
}

Result<TableView> view_of(const Arguments& a) {
  TableView view;
  const auto& keys = cpustat_sort_keys();
  view.sort = static_cast<size_t>(std::ranges::find(keys, a.sort) - keys.begin());
  view.is_reversed = a.reverse;
  view.by_process = a.by == "process";
  view.hides_idle = a.busy;
  if (!a.filter.empty()) view.filter = TRY(analyze::Pattern::compile(a.filter));
  return view;
}

Result<CpustatOptions> run_options(const Arguments& a) {
  if (!(a.interval >= 0.01 && a.interval <= 3600)) return fail("--interval: between 0.01 and 3600 seconds");
  if (a.json && a.csv) return fail("--json and --csv exclude each other");
  CpustatOptions options;
  options.interval_ns = static_cast<uint64_t>(a.interval * 1e9);
  options.count = a.count;
  options.duration_ns = static_cast<uint64_t>(a.duration * 1e9);
  options.ends_with_threads = !a.target.all && a.target.cgroup.empty();
  return options;
}

uint64_t own_cpu_ns() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  auto ns = [](const timeval& t) { return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_usec) * 1000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

void say_summary(const CpustatRun& run, const TableView& view, uint64_t own_ns) {
  TableView totals_view = view;
  totals_view.by_process = true;
  const uint64_t length_ns = run.totals().length_ns();
  const std::vector<cpustat::Row> threads = run.totals().rows();
  const std::vector<cpustat::Row> rows = shown_rows(totals_view, threads);
  say(fmt::format("cprof: {} of {} threads in {} processes: {}", duration_text(static_cast<double>(length_ns)), threads.size(),
                  cpustat::by_process(threads).size(), cpustat_sum_text(threads, length_ns)));
  if (length_ns) say(fmt::format("cprof: cost: {} of CPU, {} of one CPU", duration_text(static_cast<double>(own_ns)),
                                 percent(static_cast<double>(own_ns) / static_cast<double>(length_ns))));
  const CpustatTable table(totals_view, length_ns, kSummaryColumns, term::Style(false));
  if (!rows.empty()) say(table.header());
  for (size_t i = 0; i < std::min(kSummaryRows, rows.size()); i++) say(table.line(rows[i]));
  const Diagnostics losses = run.diagnostics();
  for (const auto& [name, entry] : losses.entries())
    if (entry.severity != Severity::kInfo) say(fmt::format("cprof: {} ({})", entry.description, entry.count));
}

// What a run of this verb has besides the run: the command and what it printed, the outputs.
class Session {
 public:
  Session(Arguments a, CpustatOptions options, TableView view, Outputs outputs)
      : a_(std::move(a)), options_(options), view_(std::move(view)), outputs_(std::move(outputs)) {}

  Result<int> go() {
    is_live_ = !a_.json && !a_.csv && !a_.batch && term::can_be_live();
    const uint64_t cpu_before = own_cpu_ns();
    TRY(fork_command());
    const cpustat::Target target = TRY(target_of(a_, command_));
    CpustatRun run(options_, TRY(make_source(a_, target)));
    Lines lines = TRY(Lines::open(a_, outputs_.lines, view_));
    cpustat::CounterTracks tracks(a_.target.text());
    session::StopSignals signals(false);
    TRY(run.start());
    if (command_)
      if (auto released = command_->release(); !released) return failed_command(released.error());
    auto also = [&](const cpustat::Interval& interval) -> Result<void> {
      if (!outputs_.recordings.empty()) tracks.add(interval);
      return lines.add(interval);
    };
    auto ran = look(run, signals, also);
    const int status = end_command();
    if (held_) held_->put_out();
    const uint64_t own_ns = own_cpu_ns() - cpu_before;
    auto finished = lines.finish();
    if (!outputs_.recordings.empty()) TRY(session::write_outputs(tracks.take(run.diagnostics()), outputs_.recordings, {}, say_output_losses));
    if (!a_.quiet) say_summary(run, view_, own_ns);
    TRY(ran);
    TRY(finished);
    return status;
  }

 private:
  Result<void> fork_command() {
    if (a_.target.command.empty()) return {};
    if (is_live_) held_.emplace(TRY(HeldOutput::begin()));
    auto command = collect::Command::fork(a_.target.command);
    if (held_) held_->release();
    command_.emplace(TRY(std::move(command)));
    return {};
  }

  int failed_command(const Error& error) {
    fail_with(error);
    return command_->status() < 0 ? kFailed : command_->status();
  }

  Result<void> look(CpustatRun& run, const session::StopSignals& signals, OnInterval also) {
    auto has_ended = [&] { return command_ && command_->has_ended(); };
    if (is_live_) {
      CpustatLive live(TRY(term::Terminal::open()), view_, options_.interval_ns, a_.target.text(), std::move(also));
      return run.go_on(live, has_ended);
    }
    const size_t rows = a_.json || a_.csv ? 0 : a_.rows;
    CpustatBatch batch(view_, rows, options_.interval_ns, [&] { return signals.requested(); }, std::move(also));
    return run.go_on(batch, has_ended);
  }

  // One that still runs is asked to end.
  int end_command() {
    if (!command_) return kDone;
    if (!command_->has_ended()) kill(command_->pid(), SIGTERM);
    for (int i = 0; i < 200 && !command_->has_ended(); i++) usleep(10'000);
    return command_->status() < 0 ? kDone : command_->status();
  }

  Arguments a_;
  CpustatOptions options_;
  TableView view_;
  Outputs outputs_;
  bool is_live_ = false;
  std::optional<collect::Command> command_;
  std::optional<HeldOutput> held_;
};

}  // namespace

int cpustat_main(std::vector<std::string> arguments) {
  Arguments a;
  CLI::App app("What each thread does with its time: user, kernel, runnable, each kind of wait.", "cprof cpustat");
  add_options(app, a);
  if (auto status = a.target.parse(app, std::move(arguments))) return *status;
  auto options = run_options(a);
  if (!options) return wrong_usage(options.error());
  auto view = view_of(a);
  if (!view) return wrong_usage(in_context("--filter", view.error()));
  auto outputs = outputs_of(a);
  if (!outputs) return wrong_usage(outputs.error());
  Session run(std::move(a), *options, std::move(*view), std::move(*outputs));
  auto status = run.go();
  return status ? *status : fail_with(status.error());
}

}  // namespace cprof::cli
