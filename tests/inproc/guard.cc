// Preloaded in front of libcprof: ends the program when its sampling handler calls something that takes the lock of the
// allocator or of the loader, or any mutex. It gets between by sigaction(): the real handler runs inside one that marks
// the thread.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

namespace {

using Handler = void (*)(int, siginfo_t*, void*);
using SigAction = int (*)(int, const struct sigaction*, struct sigaction*);

constexpr int kSignal = SIGURG;  // what libcprof takes first
Handler guarded = nullptr;
__thread bool is_inside __attribute__((tls_model("initial-exec"))) = false;

template <typename F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

void check(const char* what) {
  if (!is_inside) return;
  is_inside = false;
  for (const char* text : {"guard: the sampling handler calls ", what, "\n"})
    if (write(STDERR_FILENO, text, strlen(text)) < 0) break;
  abort();
}

void run_guarded(int signal, siginfo_t* info, void* context) {
  is_inside = true;
  guarded(signal, info, context);
  is_inside = false;
}

}  // namespace

extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void __libc_free(void* memory);

void* malloc(size_t bytes) noexcept { return check("malloc"), __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) noexcept { return check("calloc"), __libc_calloc(count, bytes); }
void* realloc(void* memory, size_t bytes) noexcept { return check("realloc"), __libc_realloc(memory, bytes); }
void free(void* memory) noexcept { return check("free"), __libc_free(memory); }

int dl_iterate_phdr(int (*visit)(dl_phdr_info*, size_t, void*), void* data) {
  static const auto real = next<decltype(&dl_iterate_phdr)>("dl_iterate_phdr");
  check("dl_iterate_phdr");
  return real(visit, data);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static decltype(&pthread_mutex_lock) real = nullptr;
  if (!real) real = next<decltype(&pthread_mutex_lock)>("pthread_mutex_lock");
  check("pthread_mutex_lock");
  return real(mutex);
}

// Who asks for the handler gets the one that was given.
int sigaction(int signal, const struct sigaction* wanted, struct sigaction* before) noexcept {
  static const auto real = next<SigAction>("sigaction");
  if (signal != kSignal) return real(signal, wanted, before);
  const Handler earlier = guarded;
  struct sigaction ours = {};
  const bool is_handler = wanted && wanted->sa_flags & SA_SIGINFO;
  if (is_handler) {
    ours = *wanted;
    guarded = wanted->sa_sigaction;
    ours.sa_sigaction = run_guarded;
  }
  const int result = real(signal, is_handler ? &ours : wanted, before);
  if (before && before->sa_flags & SA_SIGINFO && before->sa_sigaction == run_guarded) before->sa_sigaction = earlier;
  return result;
}

}  // extern "C"
