// A child renames itself with prctl, without exec: first work as the old name, then as "app".
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

NOINLINE void as_zygote(double deadline) {
  while (now_seconds() < deadline) BURN(100000);
  AFTER_CALL();
}
NOINLINE void as_app(double deadline) {
  while (now_seconds() < deadline) BURN(100000);
  AFTER_CALL();
}

int main(int argc, char** argv) {
  double begin = now_seconds(), half = run_seconds(argc, argv) / 2;
  prctl(PR_SET_NAME, "zygote");
  as_zygote(begin + half);
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_NAME, "app");
    as_app(begin + 2 * half);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  return 0;
}
