// One of the short-lived processes that `children` starts: 20 ms of CPU time, or argv[1] ms.
#include "work.h"

NOINLINE void child_work(long budget_ns) {
  struct timespec used;
  do {
    BURN(20000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  } while (used.tv_sec == 0 && used.tv_nsec < budget_ns);
  AFTER_CALL();
}

int main(int argc, char** argv) {
  child_work((argc > 1 ? atol(argv[1]) : 20) * 1000000);
  return 0;
}
