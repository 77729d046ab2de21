#include "pipeline/unfinished.h"

#include <cstdlib>

#include "base/clock.h"
#include "pipeline/profile_namer.h"
#include "pipeline/surroundings.h"
#include "pipeline/wait_classifier.h"

namespace cprof::pipeline {
namespace {

// Both clocks began at the same distance. A machine that slept meanwhile is taken for another one.
bool is_this_boot(const profile::RunInfo& run) {
  event::SessionInfo info;
  info.hostname = run.hostname;
  info.kernel_release = run.kernel_release;
  if (!surroundings_of(info).same_machine || run.start_realtime_ns == 0) return false;
  const auto then = static_cast<int64_t>(run.start_realtime_ns - run.start_ns);
  const auto now = static_cast<int64_t>(clock_ns(CLOCK_REALTIME) - monotonic_ns());
  return std::abs(now - then) < int64_t{5 * kSecondNs};
}

}  // namespace

void name_unfinished(profile::Profile& profile, const Options& options) {
  profile.diagnostics.add("recording_cut_off", Severity::kDataLoss,
                          "the recording was cut off: it holds what had come some seconds before its end");
  profile.run.is_unfinished = false;
  if (!options.symbolize) return;
  const Provenance provenance{.trust_paths = false, .this_boot = is_this_boot(profile.run)};
  const auto kernel = name_profile(profile, options, provenance);
  classify_waits(profile, kernel ? &*kernel : nullptr);
}

}  // namespace cprof::pipeline
