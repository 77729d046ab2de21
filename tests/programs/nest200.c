// 200 distinct functions nested in one another: f199 is called by f198 ... by f0 by main.
#include "work.h"

static double deadline;

NOINLINE void nested_199(void) {
  while (now_seconds() < deadline) BURN(100000);
  AFTER_CALL();
}

#define NEST(caller, callee) \
  NOINLINE void nested_##caller(void) { nested_##callee(); AFTER_CALL(); }
#include "nest200.inc"

int main(int argc, char** argv) {
  deadline = deadline_from(argc, argv);
  nested_0();
  return 0;
}
