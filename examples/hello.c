/* The smallest use of libcprof from C: scopes, a counter, a mark, and samples of the same time.
 *   cc -O2 hello.c $(pkg-config --cflags --libs cprof) && ./a.out && cprof view hello.pftrace
 */
#include <cprof/cprof.h>
#include <stdio.h>

static double integrate(int steps) {
  CPROF_FUNCTION();
  double sum = 0;
  for (int n = 0; n < steps; n++) {
    const double x = (n + 0.5) / steps;
    sum += 4 / (1 + x * x);
  }
  return sum / steps;
}

int main(void) {
  if (cprof_start("out=hello.pftrace,freq=1000") != 0) {
    fprintf(stderr, "%s\n", cprof_error());
    return 1;
  }
  for (int round = 1; round <= 10; round++) {
    CPROF_SCOPE("round");
    CPROF_COUNTER("steps", round * 1000000);
    printf("%.9f\n", integrate(round * 1000000));
  }
  CPROF_MARK("done");
  return cprof_stop() == 0 ? 0 : 1;
}
