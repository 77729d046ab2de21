#include "embed/trigger.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "embed/library.h"

namespace cprof::embed {
namespace {

struct Trigger {
  Options options;
  std::string text;
  sem_t pulled;
};
constexpr uint64_t kBetweenLooksNs = kSecondNs;
Trigger* trigger = nullptr;   // made once, before the handler is there

void on_signal(int) {
  const int saved = errno;
  sem_post(&trigger->pulled);
  errno = saved;
}

bool is_over() { return Library::get().threads().is_program_over(); }

// Or until the program is over.
void sleep_seconds(double seconds) {
  const uint64_t end_ns = monotonic_ns() + static_cast<uint64_t>(seconds * 1e9);
  for (uint64_t now_ns = monotonic_ns(); now_ns < end_ns && !is_over(); now_ns = monotonic_ns())
    usleep(static_cast<useconds_t>(std::min<uint64_t>(end_ns - now_ns, kBetweenLooksNs) / 1000));
}

// False: the program is over.
bool wait_until_pulled() {
  for (;;) {
    timespec until = {};
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += kBetweenLooksNs / kSecondNs;
    if (sem_clockwait(&trigger->pulled, CLOCK_MONOTONIC, &until) == 0) return true;
    if (is_over()) return false;
  }
}

void* wait_for_signals(void*) {
  pthread_setname_np(pthread_self(), "cprof-trigger");
  Library::get().threads().leave_out(OwnThread::kTrigger, current_tid());
  while (wait_until_pulled()) {
    if (!Library::get().start(trigger->text)) continue;
    sleep_seconds(trigger->options.trigger_seconds);
    (void)Library::get().stop();
    while (sem_trywait(&trigger->pulled) == 0) {
    }
  }
  return nullptr;
}

Result<void> start_waiting() {
  sem_init(&trigger->pulled, 0, 0);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, wait_for_signals, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error) return fail(std::string("the trigger's thread: ") + strerror(error), error);
  pthread_detach(thread);
  return {};
}

}  // namespace

Result<void> install_trigger(const Options& options, const std::string& text) {
  trigger = new Trigger{options, text, {}};
  TRY(start_waiting());
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  if (sigaction(options.trigger_signal, &action, nullptr) != 0) return fail_errno("the trigger's signal");
  return {};
}

void renew_trigger_in_child() {
  if (!trigger) return;
  const bool is_wanted = trigger->options.children == Children::kYes;
  auto waits = is_wanted ? start_waiting() : Result<void>();
  if (!waits) say("the signal starts no session in this child: " + waits.error().message);
  if (!is_wanted || !waits) signal(trigger->options.trigger_signal, SIG_DFL);
}

}  // namespace cprof::embed
