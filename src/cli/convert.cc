// cprof convert: any input format to any output format.
#include <fmt/format.h>

#include "cli/options.h"
#include "cli/verb.h"
#include "load/load.h"

namespace cprof::cli {
namespace {

Result<void> convert(const std::string& input, const std::string& input_format, const OutputArguments& output,
                     const NamingArguments& naming) {
  load::Options options;
  options.format_name = input_format;
  TRY(naming.apply_to(options.pipeline));
  options.name_finished = naming.names_sources();
  auto outputs = TRY(output.outputs());
  profile::Profile profile = TRY(load::load_profile(input, options));
  say_losses(profile.diagnostics, input, Severity::kError);
  return session::write_outputs(profile, outputs, output.write_options());
}

}  // namespace

int convert_main(std::vector<std::string> arguments) {
  std::vector<std::string> inputs;
  std::string input_format;
  OutputArguments output;
  NamingArguments naming;
  CLI::App app("Converts a profile: any input format to any output format.", "cprof convert");
  app.add_option("input", inputs, "profile to read, '-' is stdin")->required();
  app.add_option("--input-format", input_format, "input format by name, over what its bytes say");
  output.add_to(app, true);
  naming.add_to(app);
  naming.add_elsewhere_to(app);
  if (auto status = parse(app, std::move(arguments))) return *status;
  if (output.paths.empty()) {
    say("cprof: convert needs -o FILE (see 'cprof convert --help')");
    return kWrongUsage;
  }
  if (inputs.size() > 1) {
    say("cprof: convert: merging several inputs is not supported yet");
    return kWrongUsage;
  }
  if (auto bad = output.outputs(); !bad) {
    fail_with(bad.error());
    return kWrongUsage;
  }
  auto done = convert(inputs[0], input_format, output, naming);
  return done ? kDone : fail_with(done.error());
}

}  // namespace cprof::cli
