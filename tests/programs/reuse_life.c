// One life of a reused pid; LIFE names its function.
#include "work.h"

NOINLINE void LIFE(double deadline) {
  while (now_seconds() < deadline) BURN(100000);
  AFTER_CALL();
}

int main(int argc, char** argv) {
  LIFE(deadline_from(argc, argv));
  return 0;
}
