// Works half of the time, then becomes exec_next (in the same folder) and works there.
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

NOINLINE void before_exec(double deadline) {
  while (now_seconds() < deadline) BURN(100000);
  AFTER_CALL();
}

int main(int argc, char** argv) {
  double half = run_seconds(argc, argv) / 2;
  before_exec(now_seconds() + half);
  char self[PATH_MAX] = "", next[PATH_MAX + 16], duration[32];
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 1;
  snprintf(next, sizeof next, "%s/exec_next", dirname(self));
  snprintf(duration, sizeof duration, "%f", half);
  execl(next, next, duration, (char*)NULL);
  return 1;
}
