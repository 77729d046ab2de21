// One of the short-lived processes that `children` starts: 20 ms of CPU time.
#include "work.h"

NOINLINE void child_work(void) {
  struct timespec used;
  do {
    BURN(20000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  } while (used.tv_sec == 0 && used.tv_nsec < 20000000);
  AFTER_CALL();
}

int main(void) {
  child_work();
  return 0;
}
