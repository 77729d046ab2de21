#include "profile/this_machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"

namespace cprof::profile {

void describe_this_machine(RunInfo& run) {
  utsname names{};
  uname(&names);
  run.tool = "cprof " CPROF_VERSION;
  run.hostname = names.nodename;
  run.kernel_release = names.release;
  run.start_realtime_ns = clock_ns(CLOCK_REALTIME);
  run.cpus = static_cast<uint32_t>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace cprof::profile
