// 60/30/10 % of the time in three functions, by fixed work.
#include "work.h"

enum { kUnit = 20000 };

NOINLINE void share_sixty(void) { BURN(6 * kUnit); AFTER_CALL(); }
NOINLINE void share_thirty(void) { BURN(3 * kUnit); AFTER_CALL(); }
NOINLINE void share_ten(void) { BURN(1 * kUnit); AFTER_CALL(); }

NOINLINE void one_round(void) {
  share_sixty();
  share_thirty();
  share_ten();
  AFTER_CALL();
}

int main(int argc, char** argv) {
  double deadline = deadline_from(argc, argv);
  while (now_seconds() < deadline) one_round();
  return 0;
}
