// Generated code that a jitdump in the folder argv[2] tells of: f runs at one place and is moved to another, unannounced code
// runs at the old place, then g is loaded there. Four phases of equal length; a function of each is on the stack.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

typedef void (*Code)(unsigned long);

#if defined(__x86_64__)
// push %rbp; mov %rsp,%rbp; 1: dec %rdi; jnz 1b; pop %rbp; ret
static const unsigned char kLoop[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};
enum { kElfMachine = 62 };
#else
// stp x29,x30,[sp,#-16]!; mov x29,sp; 1: subs x0,x0,#1; b.ne 1b; ldp x29,x30,[sp],#16; ret
static const unsigned char kLoop[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x04, 0x00, 0xf1,
                                      0xe1, 0xff, 0xff, 0x54, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
enum { kElfMachine = 183 };
#endif

static int dump;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void put(const void* bytes, size_t count) {
  if (write(dump, bytes, count) != (ssize_t)count) _exit(3);
}
static void put32(uint32_t value) { put(&value, sizeof value); }
static void put64(uint64_t value) { put(&value, sizeof value); }

static void begin(uint32_t kind, size_t body) {
  put32(kind), put32((uint32_t)(16 + body)), put64(now_ns());
  if (kind < 2) put32((uint32_t)getpid()), put32((uint32_t)getpid());
}

static void tell_load(void* code, uint64_t index, const char* name) {
  const size_t text = strlen(name) + 1;
  begin(0, 40 + text + sizeof kLoop);
  put64((uintptr_t)code), put64((uintptr_t)code), put64(sizeof kLoop), put64(index);
  put(name, text), put(kLoop, sizeof kLoop);
}

static void tell_move(void* from, void* to, uint64_t index) {
  begin(1, 48);
  put64((uintptr_t)to), put64((uintptr_t)from), put64((uintptr_t)to), put64(sizeof kLoop), put64(index);
}

static void* place(void) {
  void* code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) _exit(2);
  memcpy(code, kLoop, sizeof kLoop);
  __builtin___clear_cache((char*)code, (char*)code + sizeof kLoop);
  return code;
}

#define PHASE(name)                                                     \
  NOINLINE void name(void* code, double seconds) {                      \
    for (double end = now_seconds() + seconds; now_seconds() < end;) {  \
      ((Code)code)(400000);                                             \
      AFTER_CALL();                                                     \
    }                                                                   \
  }
PHASE(while_loaded)
PHASE(while_moved)
PHASE(while_stale)
PHASE(while_replaced)

int main(int argc, char** argv) {
  const double each = run_seconds(argc, argv) / 4;
  char path[4096];
  snprintf(path, sizeof path, "%s/jit-%d.dump", argc > 2 ? argv[2] : "/tmp", (int)getpid());
  dump = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (dump < 0) return 1;
  put32(0x4a695444), put32(1), put32(40), put32(kElfMachine), put32(0), put32((uint32_t)getpid()), put64(now_ns()), put64(0);
  if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0) == MAP_FAILED) return 2;  // by which others find it
  void *first = place(), *second = place();
  tell_load(first, 1, "f");
  while_loaded(first, each);
  tell_move(first, second, 1);
  while_moved(second, each);
  while_stale(first, each);
  tell_load(first, 2, "g");
  while_replaced(first, each);
  return 0;
}
