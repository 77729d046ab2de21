// faults N: N minor page faults, paced to stay below the kernel's limit of samples per tick.
#include <sys/mman.h>

#include "work.h"

enum { kPage = 4096, kPages = 4096 };

NOINLINE void touch_pages(char* memory, long pages) {
  for (long page = 0; page < pages; ++page) {
    memory[page * kPage] = 1;
    BURN(30000);
  }
}

int main(int argc, char** argv) {
  long left = argc > 1 ? atol(argv[1]) : 100000;
  char* memory = mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  madvise(memory, (size_t)kPages * kPage, MADV_NOHUGEPAGE);
  while (left > 0) {
    long pages = left < kPages ? left : kPages;
    touch_pages(memory, pages);
    madvise(memory, (size_t)kPages * kPage, MADV_DONTNEED);
    left -= pages;
  }
  return 0;
}
