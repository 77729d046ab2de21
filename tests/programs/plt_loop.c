// Spends its time in a PLT stub: a hot loop over a one-instruction function of a shared object, bound lazily.
#include "work.h"

void tiny_in_library(void);

NOINLINE void call_through_plt(int calls) {
  for (int i = 0; i < calls; ++i) tiny_in_library();
  AFTER_CALL();
}

int main(int argc, char** argv) {
  double deadline = deadline_from(argc, argv);
  while (now_seconds() < deadline) call_through_plt(100000);
  return 0;
}
