// 60,000 mappings, every other one of code, as a JIT compiler or a database may have them; then it works, and maps and unmaps
// a page of code each time.
#include <stdio.h>
#include <sys/mman.h>

#include "work.h"

enum { kMappings = 60000, kPage = 4096 };

static void* map_page(int protection) { return mmap(NULL, kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

NOINLINE static void work_between(void) { BURN(100000); AFTER_CALL(); }

int main(int argc, char** argv) {
  double deadline = deadline_from(argc, argv);
  for (int i = 0; i < kMappings; ++i) {
    if (map_page(i % 2 ? PROT_READ | PROT_WRITE : PROT_READ | PROT_EXEC) != MAP_FAILED) continue;
    perror("mmap");
    return 1;
  }
  while (now_seconds() < deadline) {
    work_between();
    void* page = map_page(PROT_READ | PROT_EXEC);
    if (page != MAP_FAILED) munmap(page, kPage);
  }
  return 0;
}
