// Ever new stacks: each walk through four functions takes another way, 30 calls deep, so that nearly no two are equal.
#include "work.h"

typedef void Walk(int depth, unsigned long way);
static Walk walk_a, walk_b, walk_c, walk_d;
static Walk* const kWalks[] = {walk_a, walk_b, walk_c, walk_d};

static unsigned long turned(unsigned long way, unsigned long by) { return (way >> 2) * 6364136223846793005ul + by; }

#define WALK(name, by)                                   \
  NOINLINE static void name(int depth, unsigned long way) { \
    if (depth == 0)                                      \
      BURN(10000);                                       \
    else                                                 \
      kWalks[way & 3](depth - 1, turned(way, by));       \
    AFTER_CALL();                                        \
  }
WALK(walk_a, 1)
WALK(walk_b, 3)
WALK(walk_c, 5)
WALK(walk_d, 7)

int main(int argc, char** argv) {
  double deadline = deadline_from(argc, argv);
  unsigned long random = 88172645463325252ul;
  while (now_seconds() < deadline) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    walk_a(30, random);
    AFTER_CALL();
  }
  return 0;
}
