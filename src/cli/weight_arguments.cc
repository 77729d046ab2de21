#include "cli/weight_arguments.h"

#include "cli/report_view.h"

namespace cprof::cli {

using Kind = analyze::WeightSelection::Kind;

void WeightArguments::add_to(CLI::App& app) {
  app.add_option("--weight", weight, "what a stack counts for")->check(CLI::IsMember({"samples", "wall", "offcpu"}));
  app.add_option("--metric", metric, "which metric, by name");
}

Result<analyze::Weights> WeightArguments::weights(const profile::Profile& profile) const {
  if (weight == "wall") return view_weights(profile, Kind::kWall, metric);
  if (weight == "samples") return view_weights(profile, metric.empty() ? Kind::kSamples : Kind::kMetric, metric);
  if (!metric.empty()) return fail("--weight offcpu and --metric exclude each other");
  if (!analyze::find_metric(profile, profile::kOffCpuMetric).valid())
    return fail("this profile has no off-CPU times; record with --off-cpu");
  return view_weights(profile, Kind::kMetric, profile::kOffCpuMetric);
}

void SourceArguments::add_to(CLI::App& app) {
  app.add_option("--source-path", roots, "folders where source files are looked for, parted by ':'")->allow_extra_args(false);
}

std::vector<std::string> SourceArguments::folders() const {
  std::vector<std::string> folders;
  for (std::string_view list : roots) {
    while (!list.empty()) {
      const std::string_view folder = list.substr(0, list.find(':'));
      list.remove_prefix(std::min(list.size(), folder.size() + 1));
      if (!folder.empty()) folders.emplace_back(folder);
    }
  }
  return folders;
}

}  // namespace cprof::cli
