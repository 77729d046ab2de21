// A program that knows nothing of the library, for preloading: CPU_SECONDS of work in known shares; `closed CPU_SECONDS`, the same after
// it has closed every descriptor; `storm LIBRARY SECONDS`, which loads that library again and again beside threads that allocate.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

NOINLINE void share_sixty(unsigned unit) { BURN(6 * unit); AFTER_CALL(); }
NOINLINE void share_thirty(unsigned unit) { BURN(3 * unit); AFTER_CALL(); }
NOINLINE void share_ten(unsigned unit) { BURN(1 * unit); AFTER_CALL(); }

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void* allocate_until(void* deadline) {
  void* kept[64] = {0};
  for (unsigned random = 7; now_seconds() < *(double*)deadline;) {
    random = random * 1664525u + 1013904223u;
    void** slot = &kept[random >> 26];
    free(*slot);
    *slot = malloc((random >> 12 & 0xfff) + 1);
  }
  for (unsigned n = 0; n < 64; n++) free(kept[n]);
  return NULL;
}

static int storm(const char* library, double deadline) {
  pthread_t threads[3];
  for (int n = 0; n < 3; n++) pthread_create(&threads[n], NULL, allocate_until, &deadline);
  unsigned long loaded = 0;
  for (; now_seconds() < deadline; loaded++) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle || dlclose(handle) != 0) {
      fprintf(stderr, "plain: %s\n", dlerror());
      return 1;
    }
  }
  for (int n = 0; n < 3; n++) pthread_join(threads[n], NULL);
  return loaded < 10;
}

int main(int argc, char** argv) {
  if (argc > 3 && strcmp(argv[1], "storm") == 0) return storm(argv[2], now_seconds() + atof(argv[3]));
  if (argc > 2 && strcmp(argv[1], "closed") == 0) {
    for (int fd = 3; fd < 256; fd++) close(fd);
    puts("closed");
    fflush(stdout);
    argv++;
    argc--;
  }
  unsigned random = 1;
  while (cpu_seconds() < run_seconds(argc, argv)) {
    for (int round = 0; round < 10; round++) {
      random = random * 1664525u + 1013904223u;
      const unsigned unit = 1000 + (random >> 20);
      share_sixty(unit);
      share_thirty(unit);
      share_ten(unit);
    }
  }
  return 0;
}
