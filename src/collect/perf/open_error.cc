#include "collect/perf/open_error.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"

namespace cprof::collect {
namespace {

std::string advice(const OpenAttempt& attempt, int error_number, const PerfOptions& options) {
  switch (error_number) {
    case EMFILE: {
      rlimit limit{};
      getrlimit(RLIMIT_NOFILE, &limit);
      return fmt::format("; the limit is {} open files, raise it: ulimit -n {}", limit.rlim_cur, limit.rlim_cur * 4);
    }
    case ENFILE: return "; the whole system's limit, raise it: sysctl fs.file-max";
    case EACCES:
    case EPERM: {
      int level = paranoid_level(options), needed = attempt.pid == -1 ? 0 : 2;
      if (level <= needed) return "; it belongs to another user: run as root";
      return fmt::format("; kernel.perf_event_paranoid is {}: {} needs root, CAP_PERFMON or sysctl kernel.perf_event_paranoid={}",
                         level, attempt.pid == -1 ? "sampling a CPU for all processes" : "this", needed);
    }
    case ENOENT:
    case EOPNOTSUPP: return "; this machine does not have the event, try -e cpu-clock";
    case EINVAL: return "; the kernel does not know one of the settings, try another event, --stack-size or -F";
    case ENODEV: return "; the CPU is offline or has no such counter";
    default: return "";
  }
}

}  // namespace

int paranoid_level(const PerfOptions& options) {
  auto text = read_text_file(options.paranoid_path, 64);
  return text ? atoi(text->c_str()) : 2;
}

Error open_error(const OpenAttempt& attempt, int error_number, const PerfOptions& options) {
  std::string who = attempt.pid == -1 ? "all processes" : attempt.pid == 0 ? "cprof itself" : fmt::format("pid {}", attempt.pid);
  std::string where = attempt.cpu == -1 ? "any CPU" : fmt::format("CPU {}", attempt.cpu);
  if (error_number == ESRCH) return {fmt::format("no such process {}", attempt.pid), ESRCH};
  return {fmt::format("perf_event_open({}, {}, {}): {}{}", attempt.event, who, where, strerror(error_number),
                      advice(attempt, error_number, options)),
          error_number};
}

Error ring_error(int error_number, size_t rings, size_t pages, const PerfOptions& options) {
  size_t kb = static_cast<size_t>(sysconf(_SC_PAGESIZE)) * (pages + 1) / 1024;
  auto text = read_text_file(options.mlock_kb_path, 64);
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  std::string locked = limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{} kB", limit.rlim_cur / 1024);
  return {fmt::format("mmap of a ring buffer, even of {} kB: {}; {} rings need {} kB of locked memory: raise "
                      "kernel.perf_event_mlock_kb (now {} kB a CPU) or ulimit -l (now {})",
                      kb, strerror(error_number), rings, kb * rings, text ? atoi(text->c_str()) : 516, locked),
          error_number};
}

}  // namespace cprof::collect
