// Copies 4 MiB of its own text onto anonymous memory at the same addresses, as programs do to get huge pages, and works
// there. With a second argument "plain" nothing is remapped: the names must come out the same.
#include <string.h>
#include <sys/mman.h>

#include "work.h"

enum { kBytes = 4 * 1024 * 1024 };

// The moved text: aligned, padded to 4 MiB, in a section of its own.
__asm__(
    ".pushsection .text.moved,\"ax\",@progbits\n"
    ".balign 4096\n"
    ".globl moved_begin\n"
    ".hidden moved_begin\n"
    "moved_begin:\n"
    ".skip 2097152, 0xcc\n"
    ".popsection\n");
extern const char moved_begin[];

__attribute__((section(".text.moved"))) NOINLINE void moved_leaf(void) { BURN(100000); AFTER_CALL(); }
__attribute__((section(".text.moved"))) NOINLINE void moved_spin(double deadline) {
  while (now_seconds() < deadline) moved_leaf();
  AFTER_CALL();
}

__asm__(
    ".pushsection .text.moved,\"ax\",@progbits\n"
    ".skip 2097152 + 4096, 0xcc\n"
    ".popsection\n");

static int remap(void) {
  char* text = (char*)moved_begin;
  char* copy = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return -1;
  memcpy(copy, text, kBytes);
  if (mmap(text, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) return -1;
  madvise(text, kBytes, MADV_HUGEPAGE);
  memcpy(text, copy, kBytes);
  munmap(copy, kBytes);
  return mprotect(text, kBytes, PROT_READ | PROT_EXEC);
}

int main(int argc, char** argv) {
  int plain = argc > 2 && strcmp(argv[2], "plain") == 0;
  if (!plain && remap() != 0) return 1;
  moved_spin(deadline_from(argc, argv));
  return 0;
}
