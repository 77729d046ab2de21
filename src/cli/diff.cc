// cprof diff: two profiles, what got slower and faster, as text or as a file of differences.
#include <fmt/format.h>

#include "analyze/diff.h"
#include "cli/diff_view.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "cli/weight_arguments.h"
#include "format/folded/folded.h"
#include "load/load.h"

namespace cprof::cli {
namespace {

using analyze::DiffSide;
using analyze::Normalize;

struct DiffArguments {
  std::string before, after, input_format, granularity = "functions", normalize;
  bool no_normalize = false;
  DiffViewOptions view;
  std::vector<std::string> paths;
  std::string format_name;
  WeightArguments weight;
  FilterArguments filters;
  NamingArguments naming;

  Normalize how() const {
    if (no_normalize || normalize == "none") return Normalize::kNone;
    return normalize == "time" ? Normalize::kTime : Normalize::kTotal;
  }
};

struct Loaded {
  profile::Profile profile;
  analyze::Weights values, counts;

  DiffSide side() { return {&profile, values, counts}; }
};

Result<Loaded> load_side(const DiffArguments& a, const std::string& path, const analyze::Filters& filters) {
  load::Options options;
  options.format_name = a.input_format;
  TRY(a.naming.apply_to(options));
  Loaded side;
  side.profile = TRY(load::load_profile(path, options));
  side.profile = TRY(apply_filters(std::move(side.profile), filters));
  auto values = a.weight.weights(side.profile);
  if (!values) return fail(fmt::format("{}: {}", path, values.error().message));
  side.values = std::move(*values);
  side.counts = analyze::sample_counts(side.profile, analyze::find_metric(side.profile, a.weight.metric), side.values);
  return side;
}

Result<void> check_comparable(const DiffArguments& a, const DiffSide& before, const DiffSide& after) {
  if (before.values.unit != after.values.unit)
    return fail(fmt::format("{} has {} ({}), {} has {} ({}): choose what both have with --metric", a.before, before.values.title,
                            before.values.unit, a.after, after.values.title, after.values.unit));
  if (before.values.total == 0 && after.values.total == 0)
    return fail(fmt::format("{} and {}: the total of {} is 0 in both", a.before, a.after, after.values.title));
  const bool lacks_time = a.how() == Normalize::kTime && (before.profile->run.end_ns <= before.profile->run.start_ns ||
                                                          after.profile->run.end_ns <= after.profile->run.start_ns);
  if (lacks_time) return fail("--normalize time needs to know how long both recordings took; use total or none");
  return {};
}

// Files carry the values that the table shows; an explicit --normalize scales those before.
double scale_of_files(const DiffArguments& a, const DiffSide& before, const DiffSide& after) {
  if (a.how() == Normalize::kNone) return 1;
  return a.normalize.empty() ? analyze::rate_scale(before, after) : analyze::scale_of(before, after, a.how());
}

Result<void> write_pairs(const analyze::Joined& joined, double scale, const std::string& path) {
  OutputFile out = TRY(OutputFile::create(path));
  TRY(format::write_folded_pairs(joined.profile, {joined.before, joined.after, scale}, out));
  return out.commit();
}

Result<void> write_files(const DiffArguments& a, const std::vector<session::Output>& outputs, const analyze::Joined& joined,
                         const DiffSide& before, const DiffSide& after) {
  const double scale = scale_of_files(a, before, after);
  std::vector<session::Output> others;
  for (const session::Output& output : outputs) {
    if (output.format->name != "folded") others.push_back(output);
    else TRY(write_pairs(joined, scale, output.path));
  }
  if (others.empty()) return {};
  const auto& values = after.values;
  const profile::MetricId metric = analyze::default_metric(*after.profile);
  const bool has_name = values.unit != "count" && metric.valid();
  const std::string name = has_name ? std::string(after.profile->text(after.profile->metrics[metric.index()].name)) : "samples";
  return session::write_outputs(analyze::difference(joined, scale, a.weight.metric.empty() ? name : a.weight.metric, values.unit),
                                others, {}, say_output_losses);
}

Result<void> compare(DiffArguments& a, const std::vector<session::Output>& outputs, const analyze::Filters& filters) {
  Loaded loaded_before = TRY(load_side(a, a.before, filters)), loaded_after = TRY(load_side(a, a.after, filters));
  const DiffSide before = loaded_before.side(), after = loaded_after.side();
  TRY(check_comparable(a, before, after));
  a.view.granularity = *analyze::granularity_from(a.granularity);
  const analyze::Joined joined = analyze::joined(before, after, a.view.granularity);
  if (!outputs.empty()) return write_files(a, outputs, joined, before, after);
  a.view.normalize = a.how();
  a.view.before_name = a.before;
  a.view.after_name = a.after;
  a.view.title = after.values.title;
  a.view.unit = after.values.unit;
  a.view.rate_scale = a.how() == Normalize::kNone ? 1 : analyze::rate_scale(before, after);
  const analyze::Diff diff = analyze::diff(joined, before, after, {a.how(), a.view.by_total});
  fmt::print("{}", render_diff(diff, a.view));
  return {};
}

void add_options(CLI::App& app, DiffArguments& a) {
  app.add_option("before", a.before, "profile to compare with")->required();
  app.add_option("after", a.after, "profile to look at")->required();
  app.add_option("--input-format", a.input_format, "input format by name, over what the bytes say");
  app.add_option("-o,--output", a.paths, "write the difference: folded with two counts, others with negative values")
      ->allow_extra_args(false);
  app.add_option("--format", a.format_name, "output format by name, over what the extension says");
  auto* normalize = app.add_option("--normalize", a.normalize, "what is compared: shares of the total, values per second, values")
                        ->check(CLI::IsMember({"total", "time", "none"}));
  app.add_flag("--no-normalize", a.no_normalize, "values as they are, the same as --normalize none")->excludes(normalize);
  app.add_flag("--by-total", a.view.by_total, "compare functions with all that they call");
  app.add_option("--rows", a.view.max_rows, "rows of each part of the table");
  add_granularity(app, a.granularity, "what a row is");
  a.weight.add_to(app);
  a.filters.add_to(app);
  a.naming.add_to(app);
  a.naming.add_elsewhere_to(app);
}

}  // namespace

int diff_main(std::vector<std::string> arguments) {
  DiffArguments a;
  CLI::App app("Compares two profiles: what got slower and faster.", "cprof diff");
  add_options(app, a);
  if (auto status = parse(app, std::move(arguments))) return *status;
  OutputArguments output;
  output.paths = a.paths;
  output.format_name = a.format_name;
  const auto outputs = output.outputs();
  if (!outputs) return wrong_usage(outputs.error());
  const auto filters = a.filters.filters();
  if (!filters) return wrong_usage(filters.error());
  auto done = compare(a, *outputs, *filters);
  return done ? kDone : fail_with(done.error());
}

}  // namespace cprof::cli
