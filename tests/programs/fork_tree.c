// Seven processes, three levels, without exec: each level works in its own function.
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

NOINLINE void level_work(double deadline) {
  while (now_seconds() < deadline) BURN(100000);
  AFTER_CALL();
}
NOINLINE void tree_level_2(double deadline) { level_work(deadline); AFTER_CALL(); }
NOINLINE void tree_level_1(double deadline);
NOINLINE void tree_level_0(double deadline);

static void branch(void (*next)(double), double deadline) {
  pid_t children[2];
  for (int i = 0; i < 2; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      next(deadline);
      _exit(0);
    }
  }
  level_work(deadline);
  for (int i = 0; i < 2; ++i) waitpid(children[i], NULL, 0);
}

void tree_level_1(double deadline) { branch(tree_level_2, deadline); AFTER_CALL(); }
void tree_level_0(double deadline) { branch(tree_level_1, deadline); AFTER_CALL(); }

int main(int argc, char** argv) {
  tree_level_0(deadline_from(argc, argv));
  return 0;
}
