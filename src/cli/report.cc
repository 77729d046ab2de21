// cprof report: a profile as text. Without a choice: the summary, the hottest functions and the call tree.
#include <fmt/format.h>

#include "cli/options.h"
#include "cli/report_view.h"
#include "cli/source_view.h"
#include "cli/verb.h"
#include "cli/weight_arguments.h"
#include "load/load.h"

namespace cprof::cli {
namespace {

struct ReportArguments {
  std::string input, input_format, granularity = "functions", peek, list;
  bool summary = false, top = false, tree = false;
  double min_percent = 0.5;
  ViewOptions view;
  WeightArguments weight;
  SourceArguments source;
  FilterArguments filters;
  NamingArguments naming;

  bool wants(bool view_flag) const { return view_flag || (!summary && !top && !tree && peek.empty() && list.empty()); }
};

// What a bad use would give away before anything is read.
struct Expressions {
  analyze::Filters filters;
  std::optional<analyze::Pattern> peek, list;
};

Result<std::optional<analyze::Pattern>> expression(std::string_view option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto pattern = analyze::Pattern::compile(text);
  if (!pattern) return fail(fmt::format("{} '{}': {}", option, text, pattern.error().message));
  return std::move(*pattern);
}

Result<Expressions> expressions_of(const ReportArguments& a) {
  Expressions expressions;
  expressions.filters = TRY(a.filters.filters());
  expressions.peek = TRY(expression("--peek", a.peek));
  expressions.list = TRY(expression("--list", a.list));
  return expressions;
}

Result<void> show_list(const ReportArguments& a, const profile::Profile& profile, const analyze::Weights& weights,
                       const analyze::Pattern& pattern) {
  source::SourceFiles files = a.source.files();
  const SourceView view = render_list(profile, weights, pattern, files, a.view.max_rows);
  if (view.text.empty()) return fail(fmt::format("{}: --list {} finds no function", a.input, a.list));
  for (const std::string& note : view.notes) say(fmt::format("cprof: {}", note));
  fmt::print("{}", view.text);
  return {};
}

Result<void> report(ReportArguments& a, const Expressions& expressions) {
  load::Options options;
  options.format_name = a.input_format;
  TRY(a.naming.apply_to(options));
  profile::Profile profile = TRY(load::load_profile(a.input, options));
  a.view.granularity = *analyze::granularity_from(a.granularity);
  a.view.min_share = a.min_percent / 100;
  analyze::Weights weights = TRY(a.weight.weights(profile));
  if (!expressions.filters.empty()) {
    profile = TRY(apply_filters(std::move(profile), expressions.filters));
    analyze::Weights left = TRY(a.weight.weights(profile));
    fmt::print("{}\n", render_filter_note(weights, left));
    weights = std::move(left);
  }
  SummaryOptions summary;
  summary.show_origin = true;
  if (a.wants(a.summary)) fmt::print("{}\n", render_summary(profile, summary));
  if (a.wants(a.top)) fmt::print("{}\n", render_top(profile, weights, a.view));
  if (a.wants(a.tree)) fmt::print("{}", render_tree(profile, weights, a.view));
  if (expressions.peek) {
    const std::string text = render_peek(profile, weights, *expressions.peek, a.view);
    if (text.empty()) return fail(fmt::format("{}: --peek {} finds nothing", a.input, a.peek));
    fmt::print("{}", text);
  }
  if (expressions.list) TRY(show_list(a, profile, weights, *expressions.list));
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
  app.add_option("--peek", a.peek, "callers and callees of what this regular expression finds");
  app.add_option("--list", a.list, "source lines of the functions that it finds");
  add_granularity(app, a.granularity, "what a row is");
  a.weight.add_to(app);
  app.add_option("--rows", a.view.max_rows, "rows of the table");
  app.add_option("--depth", a.view.max_depth, "levels of the tree");
  app.add_option("--min-percent", a.min_percent, "smaller nodes of the tree are counted, not shown");
  a.filters.add_to(app);
  a.source.add_to(app);
  a.naming.add_to(app);
  a.naming.add_elsewhere_to(app);
  if (auto status = parse(app, std::move(arguments))) return *status;
  const auto expressions = expressions_of(a);
  if (!expressions) return wrong_usage(expressions.error());
  auto done = report(a, *expressions);
  return done ? kDone : fail_with(done.error());
}

}  // namespace cprof::cli
