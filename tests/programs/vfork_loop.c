// main > run_vforks loops vfork() and _exit(0): inside vfork the return address is in a register.
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

NOINLINE void run_vforks(double deadline) {
  while (now_seconds() < deadline) {
    for (int i = 0; i < 20; ++i) {
      pid_t child = vfork();
      if (child == 0) _exit(0);
      if (child > 0) waitpid(child, NULL, 0);
    }
  }
  AFTER_CALL();
}

int main(int argc, char** argv) {
  run_vforks(deadline_from(argc, argv));
  AFTER_CALL();
  return 0;
}
