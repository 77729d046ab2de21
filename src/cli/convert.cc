// cprof convert: any input format to any output format; several inputs become one profile, filters leave things out.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/coarsen.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "cli/weight_arguments.h"
#include "load/load.h"
#include "profile/merge.h"

namespace cprof::cli {
namespace {

struct ConvertArguments {
  std::vector<std::string> inputs;
  std::string input_format, granularity;
  profile::MergeOptions merge;
  OutputArguments output;
  NamingArguments naming;
  FilterArguments filters;
  bool with_source = false;
  SourceArguments source;
};

void say_merge_notes(const Diagnostics& diagnostics) {
  for (const auto& [name, entry] : diagnostics.entries()) {
    if (!name.starts_with("merge_")) continue;
    const std::string more = entry.count > 1 ? fmt::format(" and {} more", entry.count - 1) : "";
    say(fmt::format("cprof: {}: {}{}", entry.description, entry.example, more));
  }
}

bool is_empty(const profile::Profile& p) {
  return p.samples.empty() && p.aggregates.empty() && p.on_cpu.empty() && p.off_cpu.empty() && p.slices.empty() && p.marks.empty() &&
         p.counters.empty();
}

// A table, a picture or a list of nothing would be taken for a result. Formats that others merge may hold nothing, and the page
// says that there is nothing, and why.
bool may_be_empty(const std::vector<session::Output>& outputs) {
  static constexpr std::string_view kMayBeEmpty[] = {"cprof", "pprof", "html"};
  return std::ranges::all_of(outputs, [](const session::Output& out) { return std::ranges::count(kMayBeEmpty, out.format->name) > 0; });
}

// One line, with the first thing that was wrong in the input.
Error no_samples(const Diagnostics& diagnostics, const std::string& path) {
  std::string text = fmt::format("{}: no samples", path);
  for (const auto& [name, entry] : diagnostics.entries())
    if (entry.severity >= Severity::kError) return {fmt::format("{}: {}", text, entry.description)};
  return {text};
}

Result<profile::Profile> load_inputs(const ConvertArguments& a, const std::vector<session::Output>& outputs) {
  load::Options options;
  options.format_name = a.input_format;
  TRY(a.naming.apply_to(options));
  std::vector<profile::MergeInput> inputs;
  for (const std::string& path : a.inputs) {
    profile::Profile profile = TRY(load::load_profile(path, options));
    const bool is_alone = a.inputs.size() == 1, is_nothing = is_alone && is_empty(profile);
    if (is_nothing && !may_be_empty(outputs)) return std::unexpected(no_samples(profile.diagnostics, path));
    say_losses(profile.diagnostics, path, Severity::kError);
    if (is_nothing) say(fmt::format("cprof: {}: no samples", path));
    if (is_alone) return profile;
    inputs.push_back({std::move(profile), path});
  }
  profile::Profile merged = profile::merge(std::move(inputs), a.merge);
  say_merge_notes(merged.diagnostics);
  if (is_empty(merged) && !may_be_empty(outputs)) return fail("no samples in any of the inputs");
  return merged;
}

Result<void> convert(const ConvertArguments& a, const analyze::Filters& filters) {
  const auto outputs = TRY(a.output.outputs());
  profile::Profile profile = TRY(load_inputs(a, outputs));
  profile = TRY(apply_filters(std::move(profile), filters));
  if (!a.granularity.empty()) profile = analyze::coarsened(profile, *analyze::granularity_from(a.granularity));
  format::WriteOptions options = a.output.write_options();
  options.with_source = a.with_source;
  options.source_roots = a.source.folders();
  return session::write_outputs(profile, outputs, options, say_output_losses);
}

Result<void> check(const ConvertArguments& a) {
  const auto outputs = TRY(a.output.outputs());
  const bool has_page = std::ranges::any_of(outputs, [](const session::Output& out) { return out.format->name == "html"; });
  if (a.with_source && !has_page) return fail("--with-source is for pages: -o FILE.html");
  return {};
}

}  // namespace

int convert_main(std::vector<std::string> arguments) {
  ConvertArguments a;
  CLI::App app("Converts profiles: any input format to any output format; several inputs become one.", "cprof convert");
  app.add_option("input", a.inputs, "profiles to read, '-' is stdin")->required();
  app.add_option("--input-format", a.input_format, "input format by name, over what its bytes say");
  app.add_flag("--all-metrics", a.merge.keep_all_metrics, "of several inputs, keep metrics that not all of them have");
  app.add_flag("--label-scopes", a.merge.label_scopes, "of several inputs, label each untimed value with its file's name");
  a.output.add_to(app, true);
  a.filters.add_to(app);
  add_granularity(app, a.granularity, "fold frames into functions, lines, addresses or files, and call them so");
  app.add_flag("--with-source", a.with_source, "put the lines of source that the profile points to into a page (.html)");
  a.source.add_to(app);
  a.naming.add_to(app);
  a.naming.add_elsewhere_to(app);
  if (auto status = parse(app, std::move(arguments))) return *status;
  if (a.output.paths.empty()) {
    say("cprof: convert needs -o FILE (see 'cprof convert --help')");
    return kWrongUsage;
  }
  if (auto bad = check(a); !bad) return wrong_usage(bad.error());
  const auto filters = a.filters.filters();
  if (!filters) return wrong_usage(filters.error());
  auto done = convert(a, *filters);
  return done ? kDone : fail_with(done.error());
}

}  // namespace cprof::cli
