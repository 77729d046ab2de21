// Over-aligned locals together with alloca: the frame is found through a saved copy of the argument pointer (DRAP),
// which the CFI writes as expressions.
#include <alloca.h>
#include <string.h>

#include "work.h"

NOINLINE void touch(char* a, char* b, unsigned bytes) {
  a[0] = 1;
  memset(b, 1, bytes);
  BURN(3000);
  AFTER_CALL();
}

NOINLINE void aligned_inner(unsigned bytes) {
  _Alignas(64) char aligned[128];
  char* dynamic = alloca(bytes);
  touch(aligned, dynamic, bytes);
  AFTER_CALL();
}

NOINLINE void aligned_outer(unsigned bytes) {
  _Alignas(64) char aligned[64];
  char* dynamic = alloca(bytes + 32);
  touch(aligned, dynamic, bytes + 32);
  aligned_inner(bytes);
  BURN(1500);
  AFTER_CALL();
}

int main(int argc, char** argv) {
  double deadline = deadline_from(argc, argv);
  for (unsigned round = 0; now_seconds() < deadline; ++round) aligned_outer(16 + round % 700);
  return 0;
}
