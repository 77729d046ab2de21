// A signal handler on an alternate stack works about half of the time while the main loop works the other half.
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "work.h"

static char alternate_stack[128 * 1024] __attribute__((aligned(16)));

NOINLINE void work_in_handler(void) { BURN(400000); AFTER_CALL(); }

static void on_alarm(int signal_number) {
  (void)signal_number;
  work_in_handler();
  AFTER_CALL();
}

NOINLINE void work_in_loop(void) { BURN(100000); AFTER_CALL(); }

NOINLINE void main_loop(double deadline) {
  while (now_seconds() < deadline) work_in_loop();
  AFTER_CALL();
}

int main(int argc, char** argv) {
  stack_t stack = {.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack};
  sigaltstack(&stack, NULL);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  struct itimerval interval = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &interval, NULL);
  main_loop(deadline_from(argc, argv));
  struct itimerval off = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &off, NULL);
  return 0;
}
