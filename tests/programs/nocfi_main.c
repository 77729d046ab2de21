// nocfi_main (normal) calls nocfi_mid (no unwind tables, frame pointers) which calls nocfi_leaf (normal).
#include "work.h"

void nocfi_mid(double deadline);

int main(int argc, char** argv) {
  nocfi_mid(deadline_from(argc, argv));
  AFTER_CALL();
  return 0;
}
