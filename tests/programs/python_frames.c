// Calls as CPython's trampolines make them: an "interpreter" calls generated code that calls the interpreter again, and
// /tmp/perf-PID.map names that code as CPython does. outer calls inner, which calls a library's work; a quarter of the time is
// outer's own, and another is spent outside of any Python function.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

typedef void (*Callee)(void);
typedef void (*Trampoline)(Callee);

#if defined(__x86_64__)
static const unsigned char kTrampoline[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};  // push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
#else
static const unsigned char kTrampoline[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x00, 0x3f, 0xd6,
                                            0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};  // stp; mov x29,sp; blr x0; ldp; ret
#endif

static Trampoline outer, inner;

NOINLINE void library_work(void) { BURN(100000); AFTER_CALL(); }
NOINLINE void _PyEval_EvalFrameDefault(void) { library_work(); library_work(); AFTER_CALL(); }
NOINLINE void _PyEval_Vector(void) { BURN(100000); inner(_PyEval_EvalFrameDefault); AFTER_CALL(); }
NOINLINE void startup_work(void) { BURN(100000); AFTER_CALL(); }
NOINLINE void Py_RunMain(double deadline) {
  while (now_seconds() < deadline) {
    startup_work();
    outer(_PyEval_Vector);
  }
  AFTER_CALL();
}

int main(int argc, char** argv) {
  char* code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
  FILE* map = fopen(path, "w");
  if (code == MAP_FAILED || !map) return 1;
  memcpy(code, kTrampoline, sizeof kTrampoline);
  memcpy(code + 256, kTrampoline, sizeof kTrampoline);
  __builtin___clear_cache(code, code + 512);
  outer = (Trampoline)(uintptr_t)code;
  inner = (Trampoline)(uintptr_t)(code + 256);
  fprintf(map, "%lx 40 py::outer:/srv/app.py\n%lx 40 py::A.inner:/srv/app.py\n", (unsigned long)code, (unsigned long)code + 256);
  fclose(map);
  Py_RunMain(deadline_from(argc, argv));
  unlink(path);
  return 0;
}
