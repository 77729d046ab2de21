#include "work.h"

void nocfi_leaf(void);
void nocfi_second(double deadline);

void nocfi_mid(double deadline) {
  nocfi_second(deadline);
  AFTER_CALL();
}

NOINLINE void nocfi_second(double deadline) {
  while (now_seconds() < deadline) {
    nocfi_leaf();
    BURN(2000);
  }
}
