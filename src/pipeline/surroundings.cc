#include "pipeline/surroundings.h"

#include <sys/utsname.h>

namespace cprof::pipeline {

Surroundings surroundings_of(const event::SessionInfo& info) {
  utsname here;
  if (uname(&here) != 0) return {};
  Surroundings result;
  result.same_kernel = info.kernel_release.empty() || info.kernel_release == here.release;
  result.same_machine = result.same_kernel && (info.hostname.empty() || info.hostname == here.nodename);
  return result;
}

}  // namespace cprof::pipeline
