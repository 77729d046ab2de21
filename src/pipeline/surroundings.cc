#include "pipeline/surroundings.h"

#include <sys/utsname.h>

namespace cprof::pipeline {

Surroundings surroundings_of(const event::SessionInfo& info) {
  utsname here;
  Surroundings result;
  result.same_clock = !info.is_other_clock;
  if (uname(&here) != 0) return result;
  result.same_kernel = info.kernel_release.empty() || info.kernel_release == here.release;
  result.same_machine = result.same_kernel && (info.hostname.empty() || info.hostname == here.nodename);
  return result;
}

}  // namespace cprof::pipeline
