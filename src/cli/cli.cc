#include "cli/cli.h"

#include <cstdio>

namespace cprof::cli {

int run(int, char**) {
  fprintf(stderr, "cprof %s\n", CPROF_VERSION);
  return 2;
}

}  // namespace cprof::cli
