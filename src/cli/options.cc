#include "cli/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <iostream>

#include "cli/option_table.h"
#include "cli/verb.h"

namespace cprof::cli {
namespace {

constexpr uint64_t kMostSeconds = 1'000'000'000;  // 31 years

Result<std::string> absolute_directory(std::string_view option, const std::string& path) {
  std::error_code error;
  auto absolute = std::filesystem::absolute(path, error);
  if (error || !std::filesystem::is_directory(absolute, error)) return fail(fmt::format("{} {}: not a directory", option, path));
  return absolute.lexically_normal().string();
}

// One line on a terminal, rewritten a few times a second, gone when a file is complete.
class DownloadLine {
 public:
  void operator()(const symbolize::DebuginfodProgress& progress) {
    auto now = std::chrono::steady_clock::now();
    bool is_done = progress.size != 0 && progress.received >= progress.size;
    if (!is_done && now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    constexpr double kMega = 1e6;
    std::string of = progress.size ? fmt::format(" of {:.1f}", static_cast<double>(progress.size) / kMega) : "";
    tell(is_done ? "\r\033[K" : fmt::format("\r\033[Kcprof: {} from {}: {:.1f}{} MB", progress.module, progress.server,
                                            static_cast<double>(progress.received) / kMega, of));
  }

 private:
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace

const CLI::Validator kSeconds([](const std::string& text) {
  double value = 0;
  if (!CLI::detail::lexical_cast(text, value)) return text + " is no number of seconds";
  return value >= 0 && value <= kMostSeconds ? std::string() : fmt::format("takes seconds, from 0 to {}, not {}", kMostSeconds, text);
}, "");

const CLI::Validator kSomeSeconds([](const std::string& text) {
  double value = 0;
  if (!CLI::detail::lexical_cast(text, value)) return text + " is no number of seconds";
  return value > 0 && value <= kMostSeconds ? std::string() : fmt::format("takes seconds, more than 0 and at most {}, not {}", kMostSeconds, text);
}, "");

const CLI::Validator kAboveZero([](const std::string& text) {
  double value = 0;
  return CLI::detail::lexical_cast(text, value) && value > 0 ? std::string() : "takes a number above 0, not " + text;
}, "");

std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments) {
  use_help_format(app);
  if (asks_for_description(arguments)) {
    fmt::print("{}", describe_options(app));
    return kDone;
  }
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kDone;
  } catch (const CLI::ParseError& e) {
    say(fmt::format("cprof: {} (see '{} --help')", e.what(), app.get_name()));
    return kWrongUsage;
  }
  return std::nullopt;
}

void OutputArguments::add_to(CLI::App& app, bool with_outputs) {
  if (with_outputs) {
    app.add_option("-o,--output", paths, "output file; may be given more than once, '-' is stdout")->allow_extra_args(false);
    app.add_option("--format", format_name, "output format by name, over what the extension says");
  }
  app.add_option("--weight", weight, "what a stack counts for")->check(CLI::IsMember({"samples", "wall", "offcpu"}));
  app.add_option("--metric", metric, "which metric, by name; default: the first");
  app.add_option("--by", by, "what folded stacks begin with: the process; it and its thread; its container or control group and it")
      ->check(CLI::IsMember({"process", "thread", "container", "cgroup"}));
  app.add_option("--folded-style", folded_style, "folded lines: comm;root;leaf or comm-pid;root;leaf")
      ->check(CLI::IsMember({"plain", "extended"}));
}

Result<std::vector<session::Output>> OutputArguments::outputs() const {
  std::vector<session::Output> result;
  for (const std::string& path : paths) {
    const format::FormatInfo* info =
        format_name.empty() ? format::find_by_path(path) : format::find_by_name(format_name);
    if (!info || !info->write) {
      std::string names;
      for (const format::FormatInfo& f : format::all_formats())
        if (f.write) names += fmt::format("{}{}", names.empty() ? "" : ", ", f.name);
      return fail(format_name.empty() ? fmt::format("{}: no output format has this extension; --format takes {}", path, names)
                                      : fmt::format("--format {}: not an output format; there are {}", format_name, names));
    }
    result.push_back({path, info});
  }
  return result;
}

format::WriteOptions OutputArguments::write_options() const {
  format::WriteOptions options;
  options.weight = weight == "wall"     ? format::Weight::kWall
                   : weight == "offcpu" ? format::Weight::kOffCpu
                                        : format::Weight::kSamples;
  options.metric = metric;
  options.by = by == "thread"      ? format::GroupBy::kThread
               : by == "container" ? format::GroupBy::kContainer
               : by == "cgroup"    ? format::GroupBy::kCgroup
                                   : format::GroupBy::kProcess;
  options.folded_style = folded_style == "extended" ? format::FoldedStyle::kExtended : format::FoldedStyle::kPlain;
  return options;
}

void NamingArguments::add_to(CLI::App& app) {
  app.add_option("--demangle", demangle, "names: full, short (no arguments) or none")
      ->check(CLI::IsMember({"full", "short", "none"}));
  app.add_flag("--no-inline", no_inline, "do not expand inlined functions");
  app.add_option("--debug-dir", debug_directories, "a directory like /usr/lib/debug to search before it; may be given more than once")
      ->allow_extra_args(false);
  app.add_flag("--debuginfod", debuginfod,
               "fetch debug files that are not here from a server: --debuginfod=URL; without one, from those of DEBUGINFOD_URLS");
}

void NamingArguments::add_elsewhere_to(CLI::App& app) {
  app.add_option("--kallsyms", kallsyms, "kernel symbols of a recording from elsewhere: a copy of its /proc/kallsyms");
  app.add_option("--root", root, "a copy of the recording's root directory: files are looked for there first");
}

Result<void> NamingArguments::apply_to(load::Options& options) const {
  options.name_finished = names_sources();
  return apply_to(options.pipeline);
}

Result<void> NamingArguments::apply_to(pipeline::Options& options) const {
  options.demangle = demangle == "short"  ? symbolize::DemangleStyle::kShort
                     : demangle == "none" ? symbolize::DemangleStyle::kNone
                                          : symbolize::DemangleStyle::kFull;
  options.inline_frames = !no_inline;
  if (!kallsyms.empty()) options.kallsyms_path = kallsyms;
  options.kallsyms_given = !kallsyms.empty();
  if (!root.empty()) options.sources.places.root = TRY(absolute_directory("--root", root));
  for (const std::string& directory : debug_directories)
    options.sources.places.debug_directories.push_back(TRY(absolute_directory("--debug-dir", directory)));
  if (debuginfod.empty()) return {};
  auto servers = TRY(symbolize::debuginfod_options(debuginfod == "true" ? "" : debuginfod));
  if (isatty(STDERR_FILENO)) servers.progress = DownloadLine();
  options.sources.debuginfod = std::make_shared<symbolize::DebuginfodClient>(std::move(servers));
  return {};
}

namespace {

Result<std::vector<analyze::Pattern>> patterns_of(std::string_view option, const std::vector<std::string>& texts) {
  std::vector<analyze::Pattern> patterns;
  for (const std::string& text : texts) {
    auto pattern = analyze::Pattern::compile(text);
    if (!pattern) return fail(fmt::format("{} '{}': {}", option, text, pattern.error().message));
    patterns.push_back(std::move(*pattern));
  }
  return patterns;
}

bool is_empty(const profile::Profile& p) {
  return p.samples.empty() && p.aggregates.empty() && p.off_cpu.empty() && p.slices.empty() && p.marks.empty() &&
         p.counters.empty();
}

}  // namespace

void FilterArguments::add_to(CLI::App& app) {
  auto add = [&](const std::string& name, std::vector<std::string>& into, const std::string& description) {
    app.add_option(name, into, description)->allow_extra_args(false);
  };
  add("--focus", focus, "keep stacks with a frame that this regular expression finds");
  add("--ignore", ignore, "leave out stacks with a frame that it finds");
  add("--hide", hide, "take frames that it finds out of their stacks");
  app.add_option("--show-from", show_from, "begin stacks at the outermost frame that it finds; leave out the others");
  add("--thread", threads, "keep threads of this name or id; may be given more than once");
  add("--process", processes, "keep processes of this name or id; may be given more than once");
  app.add_option("--time", time, "keep a part of the recording: A..B, seconds from its start; 200ms.. or ..2s");
  add("--label", labels, "keep what has this label: key=value");
  add_python(app, python);
}

Result<analyze::Filters> FilterArguments::filters() const {
  analyze::Filters filters;
  filters.focus = TRY(patterns_of("--focus", focus));
  filters.ignore = TRY(patterns_of("--ignore", ignore));
  filters.hide = TRY(patterns_of("--hide", hide));
  if (!show_from.empty()) filters.show_from = TRY(patterns_of("--show-from", {show_from})).front();
  filters.threads = threads;
  filters.processes = processes;
  if (!time.empty()) filters.time = TRY(analyze::parse_time_range(time));
  for (const std::string& label : labels) filters.labels.push_back(TRY(analyze::parse_label(label)));
  filters.python = *analyze::python_frames_from(python);
  return filters;
}

Result<profile::Profile> apply_filters(profile::Profile profile, const analyze::Filters& filters) {
  if (filters.empty()) return profile;
  profile::Profile left = TRY(analyze::filtered(profile, filters));
  if (is_empty(left) && !is_empty(profile)) return fail(fmt::format("{}: the filters leave nothing", profile.run.source));
  return left;
}

void add_python(CLI::App& app, std::string& python) {
  app.add_option("--python", python, "stacks with Python functions (python -X perf): mixed as they are (default), hide the interpreter's own C frames, only Python functions")
      ->check(CLI::IsMember({"mixed", "hide", "only"}));
}

void add_granularity(CLI::App& app, std::string& granularity, const std::string& description) {
  app.add_option("--granularity", granularity, description)
      ->check(CLI::IsMember({"functions", "lines", "addresses", "files"}));
}

Result<uint64_t> parse_bytes(const std::string& text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  unsigned shift = suffix.empty() || suffix == "B"          ? 0
                   : suffix == "K" || suffix == "KiB"       ? 10
                   : suffix == "M" || suffix == "MiB"       ? 20
                   : suffix == "G" || suffix == "GiB"       ? 30
                                                            : 64;
  if (error != std::errc() || shift == 64 || value > (~uint64_t{0} >> shift))
    return fail(fmt::format("'{}' is not a size; write 16384, 16K or 1M", text));
  return value << shift;
}

}  // namespace cprof::cli
