// cprof record: the verb. Turns options into one session::record() call, then shows what came of it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "cli/option_table.h"
#include "cli/options.h"
#include "cli/report_view.h"
#include "cli/verb.h"

namespace cprof::cli {
namespace {

constexpr const char* kDefaultOutput = "profile.cprof";

struct RecordArguments {
  std::vector<int32_t> pids, tids;
  std::string name, cgroup, container, cpus, freq, backend = "auto", unwind = "auto", stack_size = "auto", raw_path;
  bool all = false, no_kernel = false, no_inherit = false, no_symbolize = false, off_cpu = false, ignored_g = false, quiet = false, view = false;
  std::string max_size, python = "mixed";
  uint64_t period = 0, max_depth = 4096, rotate = 0;
  double duration = 0, delay = 0, window = 0;
  std::vector<std::string> events, command;
  OutputArguments output;
  NamingArguments naming;
};

void add_target_options(CLI::App& app, RecordArguments& a) {
  app.add_option("-p,--pid", a.pids, "processes to sample, with all their threads")->delimiter(',')->allow_extra_args(false);
  app.add_option("-t,--tid", a.tids, "threads to sample")->delimiter(',')->allow_extra_args(false);
  app.add_option("-n,--name", a.name, "every running process of this name");
  app.add_flag("-a,--all-cpus", a.all, "the whole machine");
  app.add_option("--cgroup", a.cgroup, "every process in this cgroup: a directory, or a path as /proc/PID/cgroup has it");
  app.add_option("--container", a.container, "every process in this container, by its id or name");
  app.add_option("-C,--cpu", a.cpus, "only these CPUs, as in 0-3,5");
}

void add_sampling_options(CLI::App& app, RecordArguments& a) {
  app.add_option("-F,--freq", a.freq, "samples per second of CPU, or 'max'; default 999 for a command, 199 for what runs already");
  app.add_option("-c,--count", a.period, "sample every N events instead")->check(kAboveZero);
  app.add_option("-e,--event", a.events, "event to sample; several by commas or by several -e; {a,b}: samples of a, with "
                 "what b counted meanwhile as b's weight")
      ->allow_extra_args(false);
  app.add_option("-d,--duration", a.duration, "stop after this many seconds")->check(kSomeSeconds);
  app.add_option("--delay", a.delay, "start sampling after this many seconds")->check(kSeconds);
  app.add_flag("-g", a.ignored_g, "accepted: stacks are always recorded");
  app.add_option("--backend", a.backend, "how to sample: in the kernel (bpf) or by perf events; auto: bpf where it can")->check(CLI::IsMember({"auto", "bpf", "perf"}));
  app.add_option("--unwind", a.unwind, "user stacks by unwind tables or by frame pointers")
      ->check(CLI::IsMember({"auto", "dwarf", "fp"}));
  app.add_option("--stack-size", a.stack_size, "bytes of stack per sample, or 'auto' (16,384, and 65,528 when that cuts stacks)");
  app.add_option("--max-depth", a.max_depth, "frames kept per stack, from the leaf");
  app.add_flag("--no-kernel", a.no_kernel, "user code only");
  app.add_flag("--no-inherit", a.no_inherit, "not the children and threads that start later");
  app.add_flag("--no-symbolize", a.no_symbolize, "keep addresses only");
  app.add_flag("--off-cpu,--with-offcpu", a.off_cpu, "also where threads wait, for what and how long");
}

void add_output_options(CLI::App& app, RecordArguments& a) {
  a.output.add_to(app, true);
  a.naming.add_to(app);
  add_python(app, a.python);
  app.add_option("--save-raw", a.raw_path, "also write the event stream as perf.data (pipe form), to be unwound again elsewhere");
  app.add_option("--max-size", a.max_size,
                 "stop when the samples and stacks recorded so far take this many bytes of memory, or the raw capture "
                 "does; outputs are made of them: most come out smaller, .txt larger");
  app.add_option("--rotate", a.rotate,
                 "at --max-size go on in the next file: NAME.0.EXT, NAME.1.EXT, ..., of which the newest N stay; with "
                 "--overwrite-window: of the dumps the newest N stay")
      ->check(kAboveZero);
  app.add_option("--overwrite-window", a.window,
                 "keep the last SECONDS only, in memory that does not grow; SIGUSR2 writes them to NAME.0.EXT, "
                 "NAME.1.EXT, ... and recording goes on; at the end the last ones are written to NAME.EXT")
      ->check(kSomeSeconds);
  app.add_flag("--view", a.view, "open the page with what was recorded");
  app.add_flag("-q,--quiet", a.quiet, "no summary");
}

// "a,{b,c}" -> "a", "{b,c}"
std::vector<std::string> split_events(const std::vector<std::string>& texts) {
  std::vector<std::string> events;
  for (const std::string& text : texts) {
    int depth = 0;
    events.emplace_back();
    for (char c : text) {
      depth += (c == '{') - (c == '}');
      if (c == ',' && depth == 0) events.emplace_back();
      else events.back() += c;
    }
  }
  return events;
}

bool is_recorded(const std::vector<std::string>& events, const std::string& metric) {
  return std::ranges::any_of(events, [&](std::string event) {
    std::ranges::replace(event, '{', ',');
    std::ranges::replace(event, '}', ',');
    return ("," + event + ",").find("," + metric + ",") != std::string::npos;
  });
}

Result<void> set_rate(const RecordArguments& a, session::RecordOptions& options) {
  options.period = a.period;
  if (a.freq == "max") {
    options.max_freq = true;
  } else if (!a.freq.empty()) {
    const char* text_end = a.freq.data() + a.freq.size();
    auto [end, error] = std::from_chars(a.freq.data(), text_end, options.freq_hz);
    if (error != std::errc() || end != text_end || options.freq_hz == 0)
      return fail(fmt::format("-F {}: not a rate; write samples per second, or max", a.freq));
  }
  if (a.period && !a.freq.empty()) return fail("-F and -c exclude each other");
  if (a.period > INT64_MAX) return fail(fmt::format("-c {}: the kernel counts to {}", a.period, INT64_MAX));
  return {};
}

Result<void> set_stack_size(const RecordArguments& a, session::RecordOptions& options) {
  if (a.stack_size == "auto") return {};
  uint64_t bytes = TRY(parse_bytes(a.stack_size));
  if (bytes < 256 || bytes > 65528) return fail("--stack-size: between 256 and 65528 bytes (the kernel's limit)");
  options.stack_bytes = static_cast<uint32_t>(bytes / 8 * 8);
  return {};
}

// How long recordings are bounded, and what of it goes together.
Result<void> set_limits(const RecordArguments& a, session::RecordOptions& options) {
  constexpr uint64_t kLeastBytes = 64 << 10;
  if (!a.max_size.empty()) options.max_bytes = TRY(parse_bytes(a.max_size));
  if (!a.max_size.empty() && options.max_bytes < kLeastBytes) return fail("--max-size: at least 64K");
  options.rotate = a.rotate;
  options.window_s = a.window;
  bool in_files = a.rotate > 0 || a.window > 0;
  if (a.window > 0 && options.max_bytes) return fail("--overwrite-window and --max-size exclude each other");
  if (a.rotate && !options.max_bytes && a.window == 0)
    return fail("--rotate: say when with --max-size BYTES, or keep a window with --overwrite-window SECONDS");
  if (in_files && !a.raw_path.empty())
    return fail("--save-raw: a raw capture is one file and holds all; leave out --rotate and --overwrite-window");
  if (in_files && std::ranges::find(a.output.paths, "-") != a.output.paths.end())
    return fail("-o -: --rotate and --overwrite-window write several files, which need a name");
  return {};
}

Result<void> set_target(const RecordArguments& a, session::RecordOptions& options) {
  int given = !a.command.empty() + !a.pids.empty() + !a.tids.empty() + !a.name.empty() + a.all + !a.cgroup.empty() + !a.container.empty();
  if (given == 0 && !a.cpus.empty()) options.target.whole_machine = true;
  else if (given != 1) return fail("give exactly one target: a command, -p PID, -t TID, -n NAME, -a, --cgroup PATH or --container ID");
  options.target.command = a.command;
  options.target.pids = a.pids;
  options.target.tids = a.tids;
  options.target.name = a.name;
  options.target.whole_machine |= a.all;
  options.target.cgroup = a.cgroup;
  options.target.container = a.container;
  return {};
}

Result<void> check_off_cpu(const RecordArguments& a) {
  if (!a.off_cpu) return {};
  if (a.delay > 0) return fail("--off-cpu with --delay: not supported: waits would count from the start");
  if (!a.cpus.empty()) return fail("--off-cpu with -C: not supported: time on other CPUs would count as waiting");
  return {};
}

// Told before the recording: afterwards there would be a profile and no way to write it.
Result<void> check_metric(const RecordArguments& a) {
  const std::string& metric = a.output.metric;
  bool is_default = a.events.empty() && (metric == "cycles" || metric == "cpu-clock");
  const bool wants_off_cpu = metric == profile::kOffCpuMetric || a.output.weight == "offcpu";
  if (wants_off_cpu && !a.off_cpu)
    return fail(fmt::format("{} {}: only with --off-cpu", metric.empty() ? "--weight" : "--metric", profile::kOffCpuMetric));
  if (metric.empty() || is_default || wants_off_cpu || is_recorded(a.events, metric)) return {};
  return fail(fmt::format("--metric {}: not among the events that are recorded; name it with -e", metric));
}

// What was recorded is never lost to a filter: where it finds nothing, all is written, and said.
Result<void> set_python(const RecordArguments& a, session::RecordOptions& options) {
  if (a.python == "mixed") return {};
  if (a.no_symbolize) return fail(fmt::format("--python {}: goes by names; leave out --no-symbolize", a.python));
  analyze::Filters filters;
  filters.python = *analyze::python_frames_from(a.python);
  options.before_writing = [filters](profile::Profile& profile) {
    auto left = analyze::filtered(profile, filters);
    if (left) profile = std::move(*left);
    else profile.diagnostics.add("recorded_unfiltered", Severity::kNotice, "everything was written: " + left.error().message);
  };
  return {};
}

// The first that can be opened again.
const session::Output* readable_output(const std::vector<session::Output>& outputs) {
  const auto found = std::ranges::find_if(outputs, [](const session::Output& o) { return o.path != "-" && o.format->read; });
  return found == outputs.end() ? nullptr : &*found;
}

Result<session::RecordOptions> to_session(RecordArguments& a) {
  session::RecordOptions options;
  TRY(set_target(a, options));
  TRY(set_rate(a, options));
  TRY(set_stack_size(a, options));
  TRY(set_limits(a, options));
  TRY(check_metric(a));
  TRY(check_off_cpu(a));
  TRY(set_python(a, options));
  if (a.duration > 0) options.duration_s = a.duration;
  if (a.max_depth == 0) return fail("--max-depth: at least 1");
  options.backend = a.backend == "bpf"    ? session::Backend::kBpf
                    : a.backend == "perf" ? session::Backend::kPerf
                                          : session::Backend::kAuto;
  options.delay_s = a.delay;
  options.events = split_events(a.events);
  options.cpus = a.cpus;
  options.frame_pointers = a.unwind == "fp";
  options.kernel = !a.no_kernel;
  options.inherit = !a.no_inherit;
  options.off_cpu = a.off_cpu;
  options.raw_path = a.raw_path;
  options.pipeline.max_depth = a.max_depth;
  options.pipeline.symbolize = !a.no_symbolize;
  if (a.no_symbolize && a.naming.names_sources()) return fail("--no-symbolize: nothing is looked up; leave out --debuginfod and --debug-dir");
  TRY(a.naming.apply_to(options.pipeline));
  if (a.output.paths.empty()) a.output.paths.push_back(kDefaultOutput);
  options.outputs = TRY(a.output.outputs());
  options.write = a.output.write_options();
  if (a.view && !readable_output(options.outputs)) return fail("--view: needs an output that cprof can open again, such as -o app.cprof");
  return options;
}

void show_progress(const session::Progress& progress) {
  tell(fmt::format("\rcprof: {:.1f} s, {} samples ", progress.seconds, progress.samples));
}

int finish(const session::Recorded& recorded, const session::RecordOptions& options, const RecordArguments& a) {
  auto written = session::write_recorded(recorded, options.write, say_output_losses);
  if (!a.quiet) {
    SummaryOptions summary;
    if (written)
      for (const session::Output& output : recorded.outputs) summary.outputs.push_back(output.path);
    tell(render_summary(recorded.profile, summary));
  }
  if (recorded.collection_error) return fail_with(*recorded.collection_error);
  if (!written) return fail_with(written.error());
  if (a.view)
    if (const int status = view_main({readable_output(recorded.outputs)->path}); status != kDone) return status;
  if (options.target.command.empty()) return kDone;
  if (recorded.command_status < 0) return fail_with({"the command still runs: it did not end on SIGTERM"});
  return recorded.command_status;
}

// Everything from "--", or from the first word that is no option, is the command.
void split_command(std::vector<std::string>& arguments, RecordArguments& a) {
  auto dashes = std::ranges::find(arguments, "--");
  if (dashes == arguments.end()) return;
  a.command.assign(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
}

}  // namespace

int record_main(std::vector<std::string> arguments) {
  RecordArguments a;
  CLI::App app("Samples a command, processes, threads or the machine.", "cprof record");
  add_target_options(app, a);
  add_sampling_options(app, a);
  add_output_options(app, a);
  app.prefix_command();
  app.footer("[--] CMD ARGS runs and samples a command; its exit status is passed on.");
  split_command(arguments, a);
  if (auto status = parse(app, std::move(arguments))) return *status;
  std::vector<std::string> rest = app.remaining();
  if (!rest.empty() && (rest[0].starts_with("-") || !a.command.empty())) {
    say(fmt::format("cprof: record has no option '{}' (see 'cprof record --help')", rest[0]));
    return kWrongUsage;
  }
  if (!rest.empty()) a.command = std::move(rest);
  auto options = to_session(a);
  if (!options) {
    fail_with(options.error());
    return kWrongUsage;
  }
  if (auto writable = session::check_outputs(options->outputs); !writable) return fail_with(writable.error());
  bool terminal = isatty(STDERR_FILENO) && !a.quiet;
  session::Listener listener;
  if (terminal) listener.progress = show_progress;
  if (!a.quiet) listener.part_written = [](const std::string& path) { say(fmt::format("cprof: wrote {}", path)); };
  listener.part_losses = say_output_losses;
  auto recorded = session::record(*options, listener);
  if (terminal) tell("\r\033[K");
  if (!recorded) return fail_with(recorded.error());
  if (recorded->command_error) {
    fail_with(*recorded->command_error);
    return recorded->command_status;
  }
  return finish(*recorded, *options, a);
}

int perf_main(std::vector<std::string> arguments) {
  if (!asks_for_description(arguments)) arguments.insert(arguments.begin(), {"--backend", "perf"});
  return record_main(std::move(arguments));
}

}  // namespace cprof::cli
