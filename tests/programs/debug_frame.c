// Built without .eh_frame: the only unwind information of these functions is in .debug_frame.
#include "work.h"

static double deadline;

NOINLINE void df_spin(void) {
  while (now_seconds() < deadline) BURN(100000);
  AFTER_CALL();
}
NOINLINE void df_c(void) { df_spin(); AFTER_CALL(); }
NOINLINE void df_b(void) { df_c(); AFTER_CALL(); }
NOINLINE void df_a(void) { df_b(); AFTER_CALL(); }

int main(int argc, char** argv) {
  deadline = deadline_from(argc, argv);
  df_a();
  return 0;
}
