// writes N: N write() calls of one byte to /dev/null, as fast as they go.
#include <fcntl.h>
#include <unistd.h>

#include "work.h"

NOINLINE int write_many(int fd, long count) {
  for (long i = 0; i < count; ++i) {
    if (write(fd, "x", 1) != 1) return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  int fd = open("/dev/null", O_WRONLY);
  return fd < 0 ? 1 : write_many(fd, argc > 1 ? atol(argv[1]) : 1000000);
}
