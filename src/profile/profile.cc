#include "profile/profile.h"

#include <algorithm>
#include <array>

namespace cprof::profile {
namespace {

struct EndText {
  std::string_view name, description;
};

// In the order of StackEnd.
constexpr std::array<EndText, static_cast<size_t>(StackEnd::kCount)> kEnds = {{
    {"complete", "the stack reached its root"},
    {"not-unwound", "there was no user stack to unwind: a kernel thread, or a source that gives none"},
    {"truncated-snapshot",
     "the stack goes on above the bytes that were copied; use a larger --stack-size (up to 65528)"},
    {"max-depth", "the stack is deeper than the limit; use a larger --max-depth"},
    {"no-mapping",
     "a return address lies in no file that was mapped; record from the program's start (record -- CMD), "
     "and for JIT code let the program write a perf map"},
    {"no-unwind-info",
     "code without unwind information or frame pointers; build it with -fasynchronous-unwind-tables "
     "or -fno-omit-frame-pointer"},
    {"bad-unwind-info", "a file's unwind information is damaged or says what cannot be followed; rebuild that file"},
    {"unreadable-memory",
     "a saved register lies outside the bytes that were copied; use a larger --stack-size "
     "(up to 65528)"},
    {"no-progress",
     "the next frame was not above the last one: a damaged stack or wrong unwind information; look at "
     "the frame where these stacks end"},
    {"bad-pc",
     "the sampled or returned-to address is not code: a damaged stack or a wild jump; look at the frame where "
     "these stacks end"},
    {"exec-in-progress", "the program was being replaced by exec; nothing to mend, samples after it are whole"},
    {"unsupported-abi", "32-bit code is not unwound; record it with --unwind fp, or build it for 64 bits"},
}};

// In the order of WaitClass.
constexpr std::array<std::string_view, static_cast<size_t>(WaitClass::kCount)> kWaitClasses = {
    "futex", "lock", "poll", "sleep", "io", "network", "memory", "sched", "other"};

}  // namespace

std::string_view name_of(WaitClass wait_class) {
  const auto index = static_cast<size_t>(wait_class);
  return index < kWaitClasses.size() ? kWaitClasses[index] : "unknown";
}

int64_t off_cpu_value(const OffCpuInterval& interval) {
  return static_cast<int64_t>(std::min<uint64_t>(interval.duration_ns(), INT64_MAX));
}

CallSiteId user_part(const Profile& profile, CallSiteId site) {
  auto is_kernel = [&](CallSiteId at) {
    return profile.locations[profile.sites[at.index()].location.index()].kind == FrameKind::kKernel;
  };
  while (site.valid() && is_kernel(site)) site = profile.sites[site.index()].parent;
  return site;
}

std::string_view name_of(StackEnd end) {
  const auto index = static_cast<size_t>(end);
  return index < kEnds.size() ? kEnds[index].name : "unknown";
}

std::string_view description_of(StackEnd end) {
  const auto index = static_cast<size_t>(end);
  return index < kEnds.size() ? kEnds[index].description : "a reason that this version does not know";
}

}  // namespace cprof::profile
