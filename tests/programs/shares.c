// 60/30/10 % of the time in three functions, by fixed work. The rounds differ in length, so that no sampling interval
// can stay in step with them.
#include "work.h"

NOINLINE void share_sixty(unsigned unit) { BURN(6 * unit); AFTER_CALL(); }
NOINLINE void share_thirty(unsigned unit) { BURN(3 * unit); AFTER_CALL(); }
NOINLINE void share_ten(unsigned unit) { BURN(1 * unit); AFTER_CALL(); }

NOINLINE void one_round(unsigned unit) {
  share_sixty(unit);
  share_thirty(unit);
  share_ten(unit);
  AFTER_CALL();
}

int main(int argc, char** argv) {
  double deadline = deadline_from(argc, argv);
  unsigned random = 1;
  while (now_seconds() < deadline) {
    random = random * 1664525u + 1013904223u;
    one_round(1000 + (random >> 20));
  }
  return 0;
}
