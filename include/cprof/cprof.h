/* cprof from inside: scopes, counters, marks, thread names and fibers of one program, and CPU samples of all its threads.
 *
 *   #include <cprof/cprof.h>
 *   cprof_start("out=app.pftrace,freq=1000");
 *   void work(void) { CPROF_FUNCTION(); ... { CPROF_SCOPE("parse"); ... } }
 *   cprof_stop();
 *
 * C11 and C++11 upwards (GCC and Clang). Every function and macro may be used in any thread at any time; none of them blocks
 * on another thread that records. Not for signal handlers. While no session runs a scope costs one load and a branch; with
 * CPROF_ENABLED=0 everything here compiles to nothing. What begins with cprof_ and ends in _ is private.
 * docs/libcprof.md tells the options of cprof_start() and of the environment's CPROF.
 */
#ifndef CPROF_CPROF_H
#define CPROF_CPROF_H

#include <stddef.h>
#include <stdint.h>

#ifndef CPROF_ENABLED
#define CPROF_ENABLED 1
#endif

#define CPROF_API_ __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

struct cprof_status {
  int is_running;
  int event_kind;                      /* 0 none, 1 perf task-clock, 2 CPU timers, 3 wall-clock timers */
  uint32_t frequency_hz;               /* asked for */
  uint32_t threads;                    /* seen in this session */
  uint64_t samples, samples_lost;
  uint64_t scopes_written, scopes_lost; /* the sum is what was emitted; marks and counters count as well */
  uint64_t cpu_ns;                     /* of the sampled threads while sampled; 0 in wall mode */
  double delivered_hz;                 /* samples per CPU second, or per second of each thread in wall mode */
};

#if CPROF_ENABLED

/* 0, or -1 and cprof_error() tells. options NULL: those of the environment's CPROF, else none. */
CPROF_API_ int cprof_start(const char *options);
/* Ends the session and writes its files. */
CPROF_API_ int cprof_stop(void);
/* Writes what was recorded so far to path (the format by its extension) and goes on. NULL: to the files of the options. */
CPROF_API_ int cprof_dump(const char *path);
/* From now on `cprof ctl PID start|stop|status|dump` drives this process, by a thread that waits for it; with CPROF in the
 * environment that is so from the start. options: of a start that brings none, NULL: the defaults. */
CPROF_API_ int cprof_allow_control(const char *options);
/* The newest failure of this library in one line; "" when there was none. Valid until the calling thread asks again. */
CPROF_API_ const char *cprof_error(void);
CPROF_API_ void cprof_get_status(struct cprof_status *status);

/* What happens in this thread from now on lies on the fiber's own track. id: any number that is the fiber's own, never 0.
 * Stacks end at the fiber's base where its stack is known (low 0: unknown). */
CPROF_API_ void cprof_fiber_enter(uint64_t id, const char *name, const void *stack_low, size_t stack_bytes);
CPROF_API_ void cprof_fiber_leave(void);
/* The fiber has ended: what it had open is closed, its id may be used again. */
CPROF_API_ void cprof_fiber_end(uint64_t id);

/* The calling thread is sampled at this rate until the matching end, which gets what begin gave. */
CPROF_API_ uint32_t cprof_rate_begin(uint32_t hz);
CPROF_API_ void cprof_rate_end(uint32_t before);

/* For names that are known at run time only: copied, each distinct one once, 65,536 in all. */
CPROF_API_ uint32_t cprof_scope_begin(const char *name);
CPROF_API_ void cprof_scope_end(uint32_t scope);
CPROF_API_ void cprof_counter(const char *name, double value);
CPROF_API_ void cprof_mark(const char *name);
CPROF_API_ void cprof_thread_name(const char *name);

/* A scope of that name that lasts longer is a latency spike: a session with keep=S writes its last S seconds then. Of two limits
 * for a name the shorter holds; 64 names. 0, or -1 and cprof_error() tells. */
CPROF_API_ int cprof_limit_scope(const char *name, uint64_t longest_ns);

/* ---- what the macros need: private ---- */

struct cprof_site {
  const char *name;
  uint32_t id;   /* 0: not yet used */
};

/* One scope (both times), mark (time, 0) or counter value (time, bits of the double). word, from bit 0: 24 bits name,
 * 4 kind, 4 flags, 12 depth, 20 track. */
struct cprof_record {
  uint64_t start, end, word;
};

struct cprof_open_scope {
  uint64_t start, word;
  uintptr_t sp;
};

/* One thread's part that the macros write. Only the thread itself does; the collector reads head. */
struct cprof_thread {
  struct cprof_record *ring;
  uint64_t mask, head, limit;   /* limit: at this head there is no known room */
  uint64_t lost;
  struct cprof_open_scope *open;
  uint32_t depth, max_depth;
  uint64_t track;               /* shifted to its place in word */
};

enum { CPROF_KIND_SCOPE_ = 0, CPROF_KIND_MARK_ = 1, CPROF_KIND_COUNTER_ = 2 };
#define CPROF_NO_SCOPE_ 0xffffffffu

extern CPROF_API_ int cprof_enabled_;
extern CPROF_API_ int cprof_uses_tsc_;
extern CPROF_API_ __thread struct cprof_thread *cprof_thread_ __attribute__((tls_model("initial-exec")));

CPROF_API_ uint64_t cprof_ticks_by_call_(void);
CPROF_API_ uint32_t cprof_begin_first_(struct cprof_site *site, uintptr_t sp);
CPROF_API_ uint32_t cprof_begin_unusual_(struct cprof_thread *thread, uint32_t id, uintptr_t sp);
CPROF_API_ void cprof_end_unusual_(uint32_t scope);
CPROF_API_ int cprof_make_room_(struct cprof_thread *thread);
CPROF_API_ void cprof_point_first_(struct cprof_site *site, uint32_t kind, uint64_t value);

static inline __attribute__((always_inline)) uint64_t cprof_ticks_(void) {
#if defined(__x86_64__)
  if (__builtin_expect(cprof_uses_tsc_, 1)) return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  if (__builtin_expect(cprof_uses_tsc_, 1)) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
#endif
  return cprof_ticks_by_call_();
}

static inline __attribute__((always_inline)) uintptr_t cprof_sp_(void) {
  uintptr_t sp;
#if defined(__x86_64__)
  __asm__("mov %%rsp, %0" : "=r"(sp));
#elif defined(__aarch64__)
  __asm__("mov %0, sp" : "=r"(sp));
#else
  sp = (uintptr_t)__builtin_frame_address(0);
#endif
  return sp;
}

static inline __attribute__((always_inline)) void cprof_put_(struct cprof_thread *thread, uint64_t start, uint64_t end,
                                                             uint64_t word) {
  uint64_t head = thread->head;
  struct cprof_record *record;
  if (__builtin_expect(head >= __atomic_load_n(&thread->limit, __ATOMIC_RELAXED), 0) && !cprof_make_room_(thread)) return;
  record = thread->ring + (head & thread->mask);
  /* A reader that sees any of these words sees the head before them, and so that the old record is gone. Not a fence:
     ThreadSanitizer, in a program built with it, knows none. */
  __atomic_store_n(&record->start, start, __ATOMIC_RELEASE);
  __atomic_store_n(&record->end, end, __ATOMIC_RELEASE);
  __atomic_store_n(&record->word, word, __ATOMIC_RELEASE);
  __atomic_store_n(&thread->head, head + 1, __ATOMIC_RELEASE);
}

static inline __attribute__((always_inline)) uint32_t cprof_push_(struct cprof_thread *thread, uint32_t id, uintptr_t sp) {
  uint32_t depth = thread->depth;
  struct cprof_open_scope *open;
  if (__builtin_expect(depth >= thread->max_depth, 0)) return cprof_begin_unusual_(thread, id, sp);
  open = thread->open + depth;
  /* A scope that was opened in a frame which is gone: its end was jumped over. */
  if (__builtin_expect(depth && open[-1].sp < sp, 0)) return cprof_begin_unusual_(thread, id, sp);
  open->sp = sp;
  __atomic_store_n(&open->word, id | (uint64_t)depth << 32 | thread->track, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->depth, depth + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&open->start, cprof_ticks_(), __ATOMIC_RELAXED);
  return depth;
}

static inline __attribute__((always_inline)) uint32_t cprof_begin_(struct cprof_site *site) {
  uint32_t id;
  if (!__atomic_load_n(&cprof_enabled_, __ATOMIC_RELAXED)) return CPROF_NO_SCOPE_;
  id = __atomic_load_n(&site->id, __ATOMIC_RELAXED);
  if (__builtin_expect(!id || !cprof_thread_, 0)) return cprof_begin_first_(site, cprof_sp_());
  return cprof_push_(cprof_thread_, id, cprof_sp_());
}

static inline __attribute__((always_inline)) uint32_t cprof_begin_limited_(struct cprof_site *site, uint64_t longest_ns) {
  if (!__atomic_load_n(&cprof_enabled_, __ATOMIC_RELAXED)) return CPROF_NO_SCOPE_;
  if (__builtin_expect(!__atomic_load_n(&site->id, __ATOMIC_RELAXED), 0)) cprof_limit_scope(site->name, longest_ns);
  return cprof_begin_(site);
}

static inline __attribute__((always_inline)) void cprof_end_(const uint32_t *scope) {
  uint64_t now;
  struct cprof_thread *thread;
  uint32_t depth = *scope;
  if (depth == CPROF_NO_SCOPE_) return;
  thread = cprof_thread_;
  if (__builtin_expect(!thread || thread->depth != depth + 1, 0)) {
    cprof_end_unusual_(depth);
    return;
  }
  now = cprof_ticks_();
  __atomic_store_n(&thread->depth, depth, __ATOMIC_RELAXED);
  cprof_put_(thread, thread->open[depth].start, now, thread->open[depth].word);
}

static inline __attribute__((always_inline)) void cprof_point_(struct cprof_site *site, uint32_t kind, uint64_t value) {
  uint32_t id;
  struct cprof_thread *thread = cprof_thread_;
  if (!__atomic_load_n(&cprof_enabled_, __ATOMIC_RELAXED)) return;
  id = __atomic_load_n(&site->id, __ATOMIC_RELAXED);
  if (__builtin_expect(!id || !thread || !thread->ring, 0)) {
    cprof_point_first_(site, kind, value);
    return;
  }
  cprof_put_(thread, cprof_ticks_(), value, id | (uint64_t)kind << 24 | (uint64_t)thread->depth << 32 | thread->track);
}

static inline void cprof_rate_end_(const uint32_t *before) { cprof_rate_end(*before); }

static inline __attribute__((always_inline)) void cprof_count_(struct cprof_site *site, double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  cprof_point_(site, CPROF_KIND_COUNTER_, bits);
}

#define CPROF_SITE_(literal) \
  __extension__({ static struct cprof_site cprof_site = {literal, 0}; &cprof_site; })
#define CPROF_JOIN_AGAIN_(a, b) a##b
#define CPROF_JOIN_(a, b) CPROF_JOIN_AGAIN_(a, b)
#define CPROF_SCOPE_AT_(begin, number) \
  __attribute__((cleanup(cprof_end_), unused)) const uint32_t CPROF_JOIN_(cprof_scope_, number) = begin

/* name: a string literal. The scope ends with the enclosing block, by exceptions as well. */
#define CPROF_SCOPE(name) CPROF_SCOPE_AT_(cprof_begin_(CPROF_SITE_(name)), __COUNTER__)
#define CPROF_FUNCTION() CPROF_SCOPE_AT_(cprof_begin_(CPROF_SITE_(__func__)), __COUNTER__)
#define CPROF_SCOPE_DYNAMIC(name) \
  CPROF_SCOPE_AT_((__atomic_load_n(&cprof_enabled_, __ATOMIC_RELAXED) ? cprof_scope_begin(name) : CPROF_NO_SCOPE_), __COUNTER__)
/* A scope with a limit, as cprof_limit_scope() has it. */
#define CPROF_SCOPE_TRIGGER(name, longest_ns) \
  CPROF_SCOPE_AT_(cprof_begin_limited_(CPROF_SITE_(name), longest_ns), __COUNTER__)
/* A critical section that is sampled at a rate of its own, until the end of the block. */
#define CPROF_SAMPLE_RATE(hz) \
  __attribute__((cleanup(cprof_rate_end_), unused)) const uint32_t CPROF_JOIN_(cprof_rate_, __LINE__) = cprof_rate_begin(hz)
#define CPROF_THREAD(name) cprof_thread_name(name)
#define CPROF_COUNTER(name, value) cprof_count_(CPROF_SITE_(name), (double)(value))
#define CPROF_MARK(name) cprof_point_(CPROF_SITE_(name), CPROF_KIND_MARK_, 0)

#else /* !CPROF_ENABLED */

static inline int cprof_start(const char *options) { (void)options; return 0; }
static inline int cprof_stop(void) { return 0; }
static inline int cprof_dump(const char *path) { (void)path; return 0; }
static inline const char *cprof_error(void) { return ""; }
static inline int cprof_allow_control(const char *options) { (void)options; return 0; }
static inline void cprof_get_status(struct cprof_status *status) { __builtin_memset(status, 0, sizeof *status); }
static inline void cprof_fiber_enter(uint64_t id, const char *name, const void *stack_low, size_t stack_bytes) {
  (void)id, (void)name, (void)stack_low, (void)stack_bytes;
}
static inline void cprof_fiber_leave(void) {}
static inline void cprof_fiber_end(uint64_t id) { (void)id; }
static inline uint32_t cprof_rate_begin(uint32_t hz) { (void)hz; return 0; }
static inline void cprof_rate_end(uint32_t before) { (void)before; }
static inline uint32_t cprof_scope_begin(const char *name) { (void)name; return 0; }
static inline void cprof_scope_end(uint32_t scope) { (void)scope; }
static inline void cprof_counter(const char *name, double value) { (void)name, (void)value; }
static inline void cprof_mark(const char *name) { (void)name; }
static inline void cprof_thread_name(const char *name) { (void)name; }
static inline int cprof_limit_scope(const char *name, uint64_t longest_ns) { (void)name, (void)longest_ns; return 0; }

#define CPROF_SCOPE(name) ((void)0)
#define CPROF_FUNCTION() ((void)0)
#define CPROF_SCOPE_DYNAMIC(name) ((void)0)
#define CPROF_SCOPE_TRIGGER(name, longest_ns) ((void)0)
#define CPROF_SAMPLE_RATE(hz) ((void)0)
#define CPROF_THREAD(name) ((void)0)
#define CPROF_COUNTER(name, value) ((void)0)
#define CPROF_MARK(name) ((void)0)

#endif

#ifdef CPROF_PROFILE_ALIASES
#define PROFILE_SCOPE(name) CPROF_SCOPE(name)
#define PROFILE_FUNCTION() CPROF_FUNCTION()
#define PROFILE_THREAD(name) CPROF_THREAD(name)
#endif

#ifdef __cplusplus
}
#endif
#endif
