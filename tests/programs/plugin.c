// Loaded by dlopen_late while it is being recorded.
#include "work.h"

NOINLINE void plugin_inner(void) { BURN(100000); AFTER_CALL(); }

void plugin_spin(double deadline) {
  while (now_seconds() < deadline) plugin_inner();
  AFTER_CALL();
}
