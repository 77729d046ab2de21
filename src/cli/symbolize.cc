// cprof symbolize: names for a recording that was made without them, here or on another machine.
#include <fmt/format.h>

#include "cli/options.h"
#include "cli/verb.h"
#include "load/load.h"

namespace cprof::cli {
namespace {

struct SymbolizeArguments {
  std::string input, input_format;
  OutputArguments output;
  NamingArguments naming;
  bool quiet = false;
};

Result<void> symbolize_input(const SymbolizeArguments& a) {
  load::Options options;
  options.format_name = a.input_format;
  TRY(a.naming.apply_to(options));
  options.name_finished = true;  // without any place given too
  auto outputs = TRY(a.output.outputs());
  profile::Profile profile = TRY(load::load_profile(a.input, options));
  say_losses(profile.diagnostics, a.input, a.quiet ? Severity::kError : Severity::kNotice);
  return session::write_outputs(profile, outputs, a.output.write_options(), say_output_losses);
}

}  // namespace

int symbolize_main(std::vector<std::string> arguments) {
  SymbolizeArguments a;
  CLI::App app("Gives names to a recording that was made without them, here or on another machine.", "cprof symbolize");
  app.add_option("input", a.input, "recording to read, '-' is stdin")->required();
  app.add_option("--input-format", a.input_format, "input format by name, over what its bytes say");
  app.add_flag("-q,--quiet", a.quiet, "errors only, not what has no name and why");
  a.output.add_to(app, true);
  a.naming.add_to(app);
  a.naming.add_elsewhere_to(app);
  if (auto status = parse(app, std::move(arguments))) return *status;
  if (a.output.paths.empty()) {
    say("cprof: symbolize needs -o FILE (see 'cprof symbolize --help')");
    return kWrongUsage;
  }
  if (auto bad = a.output.outputs(); !bad) {
    fail_with(bad.error());
    return kWrongUsage;
  }
  auto done = symbolize_input(a);
  return done ? kDone : fail_with(done.error());
}

}  // namespace cprof::cli
