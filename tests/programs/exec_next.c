// What exec_chain becomes.
#include "work.h"

NOINLINE void after_exec(double deadline) {
  while (now_seconds() < deadline) BURN(100000);
  AFTER_CALL();
}

int main(int argc, char** argv) {
  after_exec(deadline_from(argc, argv));
  return 0;
}
