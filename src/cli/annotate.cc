// cprof annotate: source and instructions of a function with their shares.
#include <fmt/format.h>

#include "cli/options.h"
#include "cli/source_view.h"
#include "cli/verb.h"
#include "cli/weight_arguments.h"
#include "load/load.h"

namespace cprof::cli {
namespace {

struct AnnotateArguments {
  std::string input, input_format, function;
  AnnotateOptions view;
  WeightArguments weight;
  SourceArguments source;
  FilterArguments filters;
  NamingArguments naming;
};

Result<void> annotate(AnnotateArguments& a, const analyze::Filters& filters) {
  load::Options options;
  options.format_name = a.input_format;
  TRY(a.naming.apply_to(options));
  a.view.demangle = options.pipeline.demangle;
  profile::Profile profile = TRY(load::load_profile(a.input, options));
  profile = TRY(apply_filters(std::move(profile), filters));
  const analyze::Weights weights = TRY(a.weight.weights(profile));
  const std::string function = TRY(choose_function(profile, a.function));
  source::SourceFiles files = a.source.files();
  const SourceView view = render_annotated(profile, weights, function, files, a.view);
  for (const std::string& note : view.notes) say(fmt::format("cprof: {}", note));
  if (view.text.empty()) return fail(fmt::format("{}: {} weighs nothing here", a.input, function));
  fmt::print("{}", view.text);
  return {};
}

}  // namespace

int annotate_main(std::vector<std::string> arguments) {
  AnnotateArguments a;
  CLI::App app("Shows source and instructions of a function with their shares.", "cprof annotate");
  app.add_option("file", a.input, "profile to read, '-' is stdin")->required();
  app.add_option("function", a.function, "its name, with or without arguments, or a regular expression for just one")->required();
  app.add_option("--input-format", a.input_format, "input format by name, over what its bytes say");
  app.add_flag("--all", a.view.show_all, "instructions that weigh nothing too");
  a.weight.add_to(app);
  a.source.add_to(app);
  a.filters.add_to(app);
  a.naming.add_to(app);
  a.naming.add_elsewhere_to(app);
  if (auto status = parse(app, std::move(arguments))) return *status;
  const auto filters = a.filters.filters();
  if (!filters) return wrong_usage(filters.error());
  auto done = annotate(a, *filters);
  return done ? kDone : fail_with(done.error());
}

}  // namespace cprof::cli
