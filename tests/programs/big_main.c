// big_main SECONDS, linked with big_text.S: a program of 150 MB that works a little and mostly sleeps, so that hundreds of it
// can run at once.
#include <unistd.h>

#include "work.h"

void big_call(void (*function)(void));  // in the big text: its frames need that text's unwind information

NOINLINE void big_work(void) {
  BURN(2000000);
  AFTER_CALL();
}

int main(int argc, char** argv) {
  double deadline = deadline_from(argc, argv);
  while (now_seconds() < deadline) {
    big_call(big_work);
    usleep(200000);
  }
  return 0;
}
