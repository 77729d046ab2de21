#include "work.h"

void nocfi_leaf(void) {
  BURN(100000);
  AFTER_CALL();
}
