#include "collect/inproc/interrupts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/signal_safe/raw_syscall.h"
#include "collect/inproc/handler.h"

namespace cprof::inproc {
namespace {

constexpr int kMaxEvents = 65536;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kTimerMark = 0xc9f0'7137;  // in the upper half of a timer's value, the state's index in the lower
std::atomic<ThreadState*> events[kMaxEvents];
std::atomic<ThreadState*> states[kMaxStates];

long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  return cprof_raw_syscall(number, a, b, c, d, e, 0);
}

template <typename T>
long address_of(T& object) {
  return reinterpret_cast<long>(&object);
}

// The clock of another thread's CPU time, as the kernel numbers it (include/linux/posix-timers.h: CPUCLOCK_SCHED of one thread).
clockid_t cpu_clock_of(int32_t tid) { return static_cast<clockid_t>(~static_cast<unsigned>(tid) << 3 | 6); }

int arm_perf(ThreadState& thread, const InterruptSetting& setting) {
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = setting.period_ns;
  attr.disabled = 1;
  attr.exclude_kernel = !setting.with_kernel;
  attr.exclude_hv = 1;
  attr.wakeup_events = 1;
  const long fd = call(SYS_perf_event_open, address_of(attr), thread.tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return static_cast<int>(fd);
  f_owner_ex owner = {F_OWNER_TID, thread.tid};
  long result = fd < kMaxEvents ? 0 : -EMFILE;
  if (!result) events[fd].store(&thread, std::memory_order_release);
  if (!result) result = call(SYS_fcntl, fd, F_SETOWN_EX, address_of(owner));
  if (!result) result = call(SYS_fcntl, fd, F_SETSIG, setting.signal);
  if (!result) result = call(SYS_fcntl, fd, F_SETFL, O_ASYNC | O_NONBLOCK);
  if (!result) result = call(SYS_ioctl, fd, PERF_EVENT_IOC_ENABLE, 0);
  if (result < 0) {
    if (fd < kMaxEvents) events[fd].store(nullptr, std::memory_order_release);
    call(SYS_close, fd);
    return static_cast<int>(result);
  }
  thread.event_fd = static_cast<int>(fd);
  return 0;
}

int set_timer(int timer, uint64_t period_ns) {
  itimerspec spec = {};
  spec.it_interval = {static_cast<time_t>(period_ns / kSecond), static_cast<long>(period_ns % kSecond)};
  spec.it_value = spec.it_interval;
  return static_cast<int>(call(SYS_timer_settime, timer, 0, address_of(spec), 0));
}

int arm_timer(ThreadState& thread, const InterruptSetting& setting) {
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = setting.signal;
  event.sigev_value.sival_ptr = reinterpret_cast<void*>(kTimerMark << 32 | thread.index);
  event._sigev_un._tid = thread.tid;
  const clockid_t clock = setting.kind == Interrupt::kCpuTimer ? cpu_clock_of(thread.tid) : CLOCK_MONOTONIC;
  int timer = -1;
  long result = call(SYS_timer_create, clock, address_of(event), address_of(timer));
  if (result < 0) return static_cast<int>(result);
  result = set_timer(timer, setting.period_ns);
  if (result < 0) {
    call(SYS_timer_delete, timer);
    return static_cast<int>(result);
  }
  thread.timer = timer;
  return 0;
}

}  // namespace

int arm(ThreadState& thread, const InterruptSetting& setting) {
  const int result = setting.kind == Interrupt::kPerf ? arm_perf(thread, setting) : arm_timer(thread, setting);
  if (result == 0) thread.interrupt = setting.kind;
  thread.period_ns = static_cast<uint32_t>(setting.period_ns);
  return result;
}

void disarm(ThreadState& thread) {
  if (thread.event_fd >= 0) {
    const int fd = thread.event_fd;
    if (owns_descriptor(thread, sampling_signal())) {
      call(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0);
      call(SYS_close, fd);
    }
    events[fd].store(nullptr, std::memory_order_release);
  }
  if (thread.timer >= 0) call(SYS_timer_delete, thread.timer);
  thread.event_fd = thread.timer = -1;
  thread.interrupt = Interrupt::kNone;
}

int set_period(ThreadState& thread, const InterruptSetting& setting) {
  thread.period_ns = static_cast<uint32_t>(setting.period_ns);
  if (thread.timer >= 0) return set_timer(thread.timer, setting.period_ns);
  if (thread.event_fd < 0) return 0;
  uint64_t period = setting.period_ns;
  return static_cast<int>(call(SYS_ioctl, thread.event_fd, PERF_EVENT_IOC_PERIOD, address_of(period)));
}

int set_running(ThreadState& thread, const InterruptSetting& setting, bool running) {
  if (thread.timer >= 0) return set_timer(thread.timer, running ? setting.period_ns : 0);
  if (thread.event_fd < 0) return 0;
  return static_cast<int>(call(SYS_ioctl, thread.event_fd, running ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0));
}

uint64_t event_ns(const ThreadState& thread) {
  uint64_t count = 0;
  if (thread.event_fd < 0) return thread.timer >= 0 ? thread_cpu_ns(thread.tid) : 0;
  return call(SYS_read, thread.event_fd, address_of(count), sizeof count) == sizeof count ? count : 0;
}

uint64_t thread_cpu_ns(int32_t tid) {
  timespec time = {};
  if (call(SYS_clock_gettime, cpu_clock_of(tid), address_of(time)) < 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * kSecond + static_cast<uint64_t>(time.tv_nsec);
}

ThreadState* owner_of_event(int fd) {
  return fd >= 0 && fd < kMaxEvents ? events[fd].load(std::memory_order_acquire) : nullptr;
}

void add_state(ThreadState& thread) { states[thread.index].store(&thread, std::memory_order_release); }

ThreadState* owner_of_timer(uint64_t value) {
  const uint32_t index = static_cast<uint32_t>(value);
  return value >> 32 == kTimerMark && index < kMaxStates ? states[index].load(std::memory_order_acquire) : nullptr;
}

bool owns_descriptor(const ThreadState& thread, int signal) {
  f_owner_ex owner = {};
  return call(SYS_fcntl, thread.event_fd, F_GETSIG) == signal &&
         call(SYS_fcntl, thread.event_fd, F_GETOWN_EX, address_of(owner)) >= 0 &&
         (owner.pid == thread.tid || owner.pid == 0);
}

}  // namespace cprof::inproc
