// children N [MS]: runs N short-lived processes (child_20ms, in the same folder) of MS milliseconds, two at a time.
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

int main(int argc, char** argv) {
  int total = argc > 1 ? atoi(argv[1]) : 50, started = 0, running = 0;
  char self[PATH_MAX] = "", child[PATH_MAX + 16];
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 1;
  snprintf(child, sizeof child, "%s/child_20ms", dirname(self));
  char* child_argv[] = {child, argc > 2 ? argv[2] : NULL, NULL};
  char* child_environment[] = {NULL};
  while (started < total || running > 0) {
    if (started < total && running < 2) {
      pid_t pid;
      if (posix_spawn(&pid, child, NULL, NULL, child_argv, child_environment) != 0) return 1;
      ++started;
      ++running;
      continue;
    }
    if (wait(NULL) < 0) return 1;
    --running;
  }
  return 0;
}
