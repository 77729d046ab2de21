// cprof report: a profile as text. Without a choice: the summary, the hottest functions and the call tree.
#include <fmt/format.h>

#include "cli/options.h"
#include "cli/report_view.h"
#include "cli/verb.h"
#include "load/load.h"

namespace cprof::cli {
namespace {

struct ReportArguments {
  std::string input, input_format, granularity = "functions", weight = "samples", metric, peek, list;
  bool summary = false, top = false, tree = false;
  double min_percent = 0.5;
  ViewOptions view;
  NamingArguments naming;

  bool wants(bool view_flag) const { return view_flag || (!summary && !top && !tree); }
};

analyze::WeightSelection::Kind kind_of(const ReportArguments& a) {
  if (a.weight == "wall") return analyze::WeightSelection::Kind::kWall;
  return a.metric.empty() ? analyze::WeightSelection::Kind::kSamples : analyze::WeightSelection::Kind::kMetric;
}

Result<void> report(ReportArguments& a) {
  load::Options options;
  options.format_name = a.input_format;
  TRY(a.naming.apply_to(options.pipeline));
  options.name_finished = a.naming.names_sources();
  profile::Profile profile = TRY(load::load_profile(a.input, options));
  a.view.granularity = *analyze::granularity_from(a.granularity);
  a.view.min_share = a.min_percent / 100;
  if (a.weight == "offcpu") {
    if (!a.metric.empty()) return fail("--weight offcpu and --metric exclude each other");
    a.metric = profile::kOffCpuMetric;
    if (!analyze::find_metric(profile, a.metric).valid())
      return fail("this profile has no off-CPU times; record with --off-cpu");
  }
  analyze::Weights weights = TRY(view_weights(profile, kind_of(a), a.metric));
  SummaryOptions summary;
  summary.show_origin = true;
  if (a.wants(a.summary)) fmt::print("{}\n", render_summary(profile, summary));
  if (a.wants(a.top)) fmt::print("{}\n", render_top(profile, weights, a.view));
  if (a.wants(a.tree)) fmt::print("{}", render_tree(profile, weights, a.view));
  return {};
}

}  // namespace

int report_main(std::vector<std::string> arguments) {
  ReportArguments a;
  CLI::App app("Shows a profile as text: summary, top functions, call tree.", "cprof report");
  app.add_option("file", a.input, "profile to read, '-' is stdin")->required();
  app.add_option("--input-format", a.input_format, "input format by name, over what its bytes say");
  app.add_flag("--summary", a.summary, "the summary only");
  app.add_flag("--top", a.top, "the table of functions only");
  app.add_flag("--tree", a.tree, "the call tree only");
  app.add_option("--granularity", a.granularity, "what a row is")->check(CLI::IsMember({"functions", "lines", "addresses"}));
  app.add_option("--weight", a.weight, "what a stack counts for")->check(CLI::IsMember({"samples", "wall", "offcpu"}));
  app.add_option("--metric", a.metric, "which metric, by name");
  app.add_option("--rows", a.view.max_rows, "rows of the table");
  app.add_option("--depth", a.view.max_depth, "levels of the tree");
  app.add_option("--min-percent", a.min_percent, "smaller nodes of the tree are counted, not shown");
  app.add_option("--peek", a.peek, "not supported yet");
  app.add_option("--list", a.list, "not supported yet");
  a.naming.add_to(app);
  a.naming.add_elsewhere_to(app);
  if (auto status = parse(app, std::move(arguments))) return *status;
  if (!a.peek.empty() || !a.list.empty()) {
    say("cprof: report --peek and --list: not supported yet");
    return kWrongUsage;
  }
  auto done = report(a);
  return done ? kDone : fail_with(done.error());
}

}  // namespace cprof::cli
