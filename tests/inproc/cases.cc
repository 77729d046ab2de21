// Programs with the library inside, one behaviour each: cases NAME [ARGS]. What can be judged from inside is checked here and
// ends with status 1 and a line; the rest is in the files that test_inproc.py reads.
#include <cprof/cprof.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "work.h"

extern char** environ;

namespace {

[[noreturn]] void give_up(const std::string& what) {
  fprintf(stderr, "cases: %s\n", what.c_str());
  _exit(1);
}

void expect(bool holds, const std::string& what) {
  if (!holds) give_up(what);
}

void start(const std::string& options) {
  if (cprof_start(options.c_str()) != 0) give_up(std::string("start: ") + cprof_error());
}

void stop() {
  if (cprof_stop() != 0) give_up(std::string("stop: ") + cprof_error());
}

std::string text(char** arguments, const char* otherwise) { return *arguments ? *arguments : otherwise; }

double thread_cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// ---- samples ----

NOINLINE void worker_six(unsigned unit) { BURN(6 * unit); AFTER_CALL(); }
NOINLINE void worker_three(unsigned unit) { BURN(3 * unit); AFTER_CALL(); }
NOINLINE void worker_one(unsigned unit) { BURN(1 * unit); AFTER_CALL(); }

NOINLINE void work_until(double deadline) {
  unsigned random = 1;
  while (now_seconds() < deadline) {
    random = random * 1664525u + 1013904223u;
    const unsigned unit = 1000 + (random >> 20);
    worker_six(unit);
    worker_three(unit);
    worker_one(unit);
  }
  AFTER_CALL();
}

// Other lengths in every thread and process: else all would be sampled at the same places.
unsigned next_seed() {
  static std::atomic<unsigned> seed{0};
  return (static_cast<unsigned>(getpid()) + seed++) * 2654435761u;
}

NOINLINE void work_for(double cpu_seconds) {
  const double start = thread_cpu_seconds();
  unsigned random = next_seed();
  while (thread_cpu_seconds() - start < cpu_seconds) {
    for (int round = 0; round < 10; round++) {
      random = random * 1664525u + 1013904223u;
      const unsigned unit = 1000 + (random >> 20);
      worker_six(unit);
      worker_three(unit);
      worker_one(unit);
    }
  }
  AFTER_CALL();
}

// Four workers that exist before the session, and two that come later: all are sampled, none has told of itself.
void shares(char** arguments) {
  const std::string out = text(arguments, "shares.folded");
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; n++)
    threads.emplace_back([&] {
      while (!go) usleep(1000);
      work_for(0.3);
    });
  usleep(50'000);
  start("freq=1000,out=" + out);
  go = true;
  for (int n = 0; n < 2; n++) threads.emplace_back(work_for, 0.3);
  work_for(0.3);
  for (std::thread& thread : threads) thread.join();
  stop();
}

// THREADS HZ SECONDS: samples against CPU seconds, threads against each other.
void rate(char** arguments) {
  const int count = atoi(arguments[0]);
  const int hz = atoi(arguments[1]);
  const double seconds = atof(arguments[2]);
  const std::string more = arguments[3] ? std::string(",") + arguments[3] : "";
  start("freq=" + std::to_string(hz) + more);
  std::vector<std::thread> threads;
  std::atomic<double> cpu{0};
  for (int n = 0; n < count; n++)
    threads.emplace_back([&] {
      const double before = thread_cpu_seconds();
      while (thread_cpu_seconds() - before < seconds) worker_one(1'000'000);
      const double used = thread_cpu_seconds() - before;
      for (double seen = cpu; !cpu.compare_exchange_weak(seen, seen + used);) {
      }
    });
  for (std::thread& thread : threads) thread.join();
  usleep(60'000);
  cprof_status status;
  cprof_get_status(&status);
  stop();
  printf("%d %d %.4f %llu %llu %.4f %d\n", count, hz, cpu.load(), static_cast<unsigned long long>(status.samples),
         static_cast<unsigned long long>(status.samples_lost), static_cast<double>(status.cpu_ns) / 1e9, status.event_kind);
}

NOINLINE void at_high_rate(double cpu_seconds) {
  CPROF_SAMPLE_RATE(5000);
  const double start = thread_cpu_seconds();
  while (thread_cpu_seconds() - start < cpu_seconds) worker_six(100'000);
  AFTER_CALL();
}

// Half of the time at five times the rate: the weights are halves all the same.
void sample_rate(char** arguments) {
  start("freq=1000,out=" + text(arguments, "rate.pb.gz"));
  for (int n = 0; n < 10; n++) {
    at_high_rate(0.05);
    const double start = thread_cpu_seconds();
    while (thread_cpu_seconds() - start < 0.05) worker_three(200'000);
  }
  stop();
}

// Waiting and working threads by the clock.
void wall(char** arguments) {
  start("freq=200,mode=wall,out=" + text(arguments, "wall.folded"));
  std::thread waiting([] {
    const double deadline = now_seconds() + 1.5;
    while (now_seconds() < deadline) usleep(50'000);
  });
  work_until(now_seconds() + 1.5);
  waiting.join();
  stop();
}

// The program closes every descriptor, and later takes our signal: sampling goes on.
void closed(char** arguments) {
  (void)arguments;
  start("freq=1000");
  for (int fd = 3; fd < 256; fd++) close(fd);
  work_for(0.2);
  usleep(700'000);
  cprof_status before, after;
  cprof_get_status(&before);
  work_for(0.3);
  usleep(100'000);
  cprof_get_status(&after);
  expect(after.samples > before.samples + 150, std::to_string(after.samples - before.samples) + " samples after the descriptors went");
  signal(SIGURG, [](int) {});
  work_for(0.1);
  usleep(700'000);
  cprof_get_status(&before);
  work_for(0.3);
  usleep(100'000);
  cprof_get_status(&after);
  expect(after.samples > before.samples + 150, std::to_string(after.samples - before.samples) + " samples after the signal went");
  stop();
}

// ---- scopes ----

NOINLINE void one_scope() { CPROF_SCOPE("counted"); AFTER_CALL(); }

// THREADS SCOPES POLICY: written + lost is what was emitted, to the last one.
void overflow(char** arguments) {
  const int count = atoi(arguments[0]);
  const uint64_t each = strtoull(arguments[1], nullptr, 10);
  start("freq=0,ring=4096,buffer=1M,overflow=" + text(arguments + 2, "drop"));
  std::vector<std::thread> threads;
  for (int n = 0; n < count; n++)
    threads.emplace_back([&] {
      for (uint64_t k = 0; k < each; k++) one_scope();
    });
  for (std::thread& thread : threads) thread.join();
  cprof_status before;
  for (int n = 0; n < 200; n++) {
    usleep(20'000);
    cprof_get_status(&before);
    if (before.scopes_written + before.scopes_lost == each * static_cast<uint64_t>(count)) break;
  }
  stop();
  expect(before.scopes_lost > 0, "nothing was lost: the case shows nothing");
  expect(before.scopes_written + before.scopes_lost == each * static_cast<uint64_t>(count),
         "written " + std::to_string(before.scopes_written) + " + lost " + std::to_string(before.scopes_lost));
}

// Short threads that record and go, while dumps are made.
void churn(char** arguments) {
  const std::string out = text(arguments, "churn.pftrace");
  const int count = arguments[0] && arguments[1] ? atoi(arguments[1]) : 1000;
  start("freq=1000,out=" + out);
  std::atomic<bool> done{false};
  std::thread dumper([&] {
    while (!done) cprof_dump((out + ".part.pftrace").c_str());
  });
  for (int n = 0; n < count; n += 4) {
    std::thread threads[4];
    for (std::thread& thread : threads)
      thread = std::thread([] {
        for (int k = 0; k < 10; k++) one_scope();
      });
    for (std::thread& thread : threads) thread.join();
  }
  done = true;
  dumper.join();
  stop();
}

jmp_buf place;

NOINLINE void bar() {
  CPROF_SCOPE("bar");
  usleep(2000);
  longjmp(place, 1);
}
NOINLINE void foo() {
  CPROF_SCOPE("foo");
  usleep(2000);
  bar();
  AFTER_CALL();
}
NOINLINE void baz() {
  CPROF_SCOPE("baz");
  usleep(2000);
}
NOINLINE void foo_or_back() {
  if (setjmp(place) == 0) foo();
}
NOINLINE void jump_back() {
  CPROF_SCOPE("main");
  foo_or_back();
  usleep(20'000);
  baz();
}

void jump(char** arguments) {
  start("freq=0,out=" + text(arguments, "jump.pftrace"));
  jump_back();
  stop();
}

void names(char** arguments) {
  const std::string out = text(arguments, "names.pftrace");
  std::atomic<int> step{0};
  const auto wait_for = [&](int wanted) {
    while (step < wanted) usleep(1000);
  };
  std::thread before([&] {
    pthread_setname_np(pthread_self(), "named-before");
    wait_for(1);
    one_scope();
    wait_for(2);
  });
  usleep(20'000);
  start("freq=0,out=" + out);
  std::thread after([&] {
    one_scope();
    pthread_setname_np(pthread_self(), "named-after");
    wait_for(2);
  });
  std::thread ours([&] {
    CPROF_THREAD("a name of more than fifteen bytes");
    one_scope();
    wait_for(2);
  });
  std::thread both([&] {
    CPROF_THREAD("the first name");
    one_scope();
    usleep(10'000);
    pthread_setname_np(pthread_self(), "the-last-name");
  });
  both.join();
  step = 1;
  usleep(300'000);
  step = 2;
  before.join();
  after.join();
  ours.join();
  stop();
}

// Everything that the header has, on one timeline with samples.
void everything(char** arguments) {
  start("freq=1000,out=" + text(arguments, "everything.pftrace"));
  for (int round = 0; round < 20; round++) {
    CPROF_SCOPE("outer"); CPROF_SCOPE("beside");
    CPROF_COUNTER("queue", round);
    CPROF_MARK("tick");
    const std::string name = "request " + std::to_string(round % 5);
    CPROF_SCOPE_DYNAMIC(name.c_str());
    worker_one(2'000'000);
  }
  stop();
}

constexpr double kLongestRequest = 0.1;
int long_requests = 0;   // which a loaded machine makes too

NOINLINE void request(unsigned milliseconds) {
  const double before = now_seconds();
  {
    CPROF_SCOPE("request");
    usleep(milliseconds * 1000);
  }
  long_requests += now_seconds() - before > kLongestRequest;
}

void serve(double seconds) {
  const double end = now_seconds() + seconds;
  while (now_seconds() < end) {
    request(2);
    work_for(0.002);
  }
}

// OUT: a server of which two requests take long, one right after the other; later a part of it does. Two reports.
void spikes(char** arguments) {
  start("freq=1000,keep=300ms,trigger=request>100ms,out=" + text(arguments, "spike-%n.pftrace") + ",out=" + text(arguments, "spike-%n") +
        ".pb.gz");
  serve(0.5);
  request(200);
  request(200);
  serve(1.2);
  for (unsigned milliseconds : {1u, 150u}) {
    CPROF_SCOPE_TRIGGER("a part", 100'000'000);
    usleep(milliseconds * 1000);
  }
  serve(0.1);
  stop();
  printf("%d\n", long_requests);
}

void fibers(char** arguments) {
  start("freq=0,out=" + text(arguments, "fibers.pftrace"));
  const auto on_thread = [](int thread) {
    CPROF_SCOPE("scheduler");
    uint32_t open[50];
    for (int fiber = 0; fiber < 50; fiber++) {
      cprof_fiber_enter(static_cast<uint64_t>(thread * 1000 + fiber + 1), nullptr, nullptr, 0);
      open[fiber] = cprof_scope_begin("in fiber");
      one_scope();
      cprof_fiber_leave();
    }
    for (int fiber = 49; fiber >= 0; fiber--) {
      cprof_fiber_enter(static_cast<uint64_t>(thread * 1000 + fiber + 1), nullptr, nullptr, 0);
      one_scope();
      cprof_scope_end(open[fiber]);
      cprof_fiber_end(static_cast<uint64_t>(thread * 1000 + fiber + 1));
    }
  };
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; n++) threads.emplace_back(on_thread, n);
  for (std::thread& thread : threads) thread.join();
  stop();
}

// ---- hard conditions ----

std::atomic<bool> storm_is_over{false};

NOINLINE void allocate_for_ever() {
  unsigned random = 7;
  std::vector<void*> kept(64);
  while (!storm_is_over) {
    random = random * 1664525u + 1013904223u;
    void*& slot = kept[random >> 26];
    free(slot);
    slot = malloc((random >> 12 & 0xfff) + 1);
  }
  for (void* slot : kept) free(slot);
}

NOINLINE void throw_deep(int depth) {
  if (depth == 0) throw std::runtime_error("on its way");
  throw_deep(depth - 1);
  AFTER_CALL();
}

NOINLINE void throw_for_ever() {
  while (!storm_is_over) {
    try {
      throw_deep(10);
    } catch (const std::runtime_error&) {
    }
  }
}

NOINLINE void load_for_ever(const char* library) {
  while (!storm_is_over) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) give_up(dlerror());
    dlclose(handle);
  }
}

// TIMES: starting and stopping under threads that allocate.
void restart(char** arguments) {
  const int times = atoi(text(arguments, "50").c_str());
  std::vector<std::thread> threads;
  for (int n = 0; n < 8; n++) threads.emplace_back(allocate_for_ever);
  for (int n = 0; n < times; n++) {
    start("freq=4000");
    usleep(1000);
    stop();
  }
  storm_is_over = true;
  for (std::thread& thread : threads) thread.join();
}

// LIBRARY SECONDS: the loader, the exception machinery and the allocator, all at once.
void storm(char** arguments) {
  const double seconds = atof(text(arguments + 1, "3").c_str());
  start("freq=4000");
  std::vector<std::thread> threads;
  threads.emplace_back(load_for_ever, arguments[0]);
  for (int n = 0; n < 3; n++) threads.emplace_back(throw_for_ever);
  for (int n = 0; n < 3; n++) threads.emplace_back(allocate_for_ever);
  usleep(static_cast<useconds_t>(seconds * 1e6));
  storm_is_over = true;
  for (std::thread& thread : threads) thread.join();
  cprof_status status;
  cprof_get_status(&status);
  stop();
  expect(status.samples > 100, "only " + std::to_string(status.samples) + " samples");
}

// What the guard is there to find.
void malloc_in_handler(char**) {
  struct sigaction action = {};
  action.sa_sigaction = [](int, siginfo_t*, void*) {
    void* volatile kept = malloc(1);
    free(kept);
  };
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGURG, &action, nullptr);
  raise(SIGURG);
}

// A parent and three children that end without exec: four files.
void forks(char** arguments) {
  const std::string out = text(arguments, "forks.folded");
  start("freq=1000,out=" + out);
  for (int n = 0; n < 3; n++) {
    const pid_t child = fork();
    if (child == 0) {
      work_for(0.5);
      exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child failed");
  }
  work_for(0.3);
  stop();
}

// A large process forks at a high rate: each fork returns.
void large_fork(char**) {
  constexpr size_t kBytes = 512u << 20;
  auto* memory = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  expect(memory != MAP_FAILED, "no memory");
  start("freq=10000,children=no");
  for (int n = 0; n < 10; n++) {
    const pid_t child = fork();
    expect(child >= 0, "fork failed");
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
  }
  stop();
}

void spawn(char**) {
  start("freq=4000");
  for (int n = 0; n < 100; n++) {
    const char* const command[] = {"/bin/true", nullptr};
    pid_t child = 0;
    expect(posix_spawn(&child, command[0], nullptr, nullptr, const_cast<char**>(command), environ) == 0, "posix_spawn failed");
    int status = 0;
    waitpid(child, &status, 0);
    expect(status == 0, "a spawned program failed");
  }
  for (int n = 0; n < 20; n++) expect(system("exit 7") == 7 << 8, "system() failed");
  for (int n = 0; n < 100; n++) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    expect(status == 0, "a vfork child failed");
  }
  stop();
}

std::atomic<int> own_ticks{0};

// The program's own profiling timer, blocked signals in a thread: both as without us.
void own_signals(char**) {
  struct sigaction action = {};
  action.sa_handler = [](int) { own_ticks++; };
  sigaction(SIGPROF, &action, nullptr);
  start("freq=1000");
  std::thread blocked([] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    work_until(now_seconds() + 0.3);
  });
  blocked.join();
  expect(own_ticks == 0, "SIGPROF came although nobody asked");
  itimerval timer = {{0, 10'000}, {0, 10'000}};
  setitimer(ITIMER_PROF, &timer, nullptr);
  const double before = thread_cpu_seconds();
  while (thread_cpu_seconds() - before < 0.5) worker_one(10'000);
  timer = {};
  setitimer(ITIMER_PROF, &timer, nullptr);
  cprof_status status;
  usleep(60'000);
  cprof_get_status(&status);
  stop();
  expect(own_ticks >= 1 && own_ticks <= 60, std::to_string(own_ticks) + " ticks of the program's own timer");
  expect(status.samples >= 400, std::to_string(status.samples) + " samples");
}

// Gives to a pipe and to a listening socket now and then, so that read() and accept() on them wait.
NOINLINE void feed(int pipe_end, const sockaddr_in& server, double deadline) {
  for (bool feeds = true; feeds && now_seconds() < deadline;) {
    usleep(3000);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    feeds = connect(client, reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0 && write(pipe_end, "x", 1) == 1;
    close(client);
  }
  close(pipe_end);
}

// SECONDS: read() and accept() begin anew by themselves, connect() goes through.
void restarted(char** arguments) {
  const double deadline = now_seconds() + atof(text(arguments, "2").c_str());
  int ends[2];
  expect(pipe(ends) == 0, "no pipe");
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  expect(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(listener, 64) == 0 &&
             getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0, "no socket");
  signal(SIGPIPE, SIG_IGN);
  start("freq=1000,mode=wall");
  std::thread feeder([&] { feed(ends[1], address, deadline + 20); });
  int rounds = 0;
  char byte;
  for (ssize_t got = 1; got == 1; rounds += got == 1) {
    worker_one(100'000);
    const int connection = accept(listener, nullptr, nullptr);
    expect(connection >= 0, "accept() ended early");
    close(connection);
    got = read(ends[0], &byte, 1);
    expect(got >= 0, "read() ended early");
    if (now_seconds() > deadline) break;
  }
  close(ends[0]);
  close(listener);
  feeder.join();
  stop();
  expect(rounds > 20, std::to_string(rounds) + " rounds");
}

// SECONDS: calls that wait are not interrupted.
void interrupted(char** arguments) {
  const double deadline = now_seconds() + atof(text(arguments, "3").c_str());
  start("freq=4000");
  std::thread busy(work_until, deadline);
  int failures = 0, rounds = 0;
  while (now_seconds() < deadline) {
    failures += poll(nullptr, 0, 2) < 0;
    const timespec nap = {0, 1'000'000};
    failures += nanosleep(&nap, nullptr) < 0;
    worker_one(20'000);
    rounds++;
  }
  busy.join();
  stop();
  expect(rounds > 50, "too few rounds");
  expect(failures == 0, std::to_string(failures) + " calls ended early");
}

volatile sig_atomic_t own_faults = 0;
sigjmp_buf after_fault;

// A stack whose upper end has no memory behind it, and frames that lead there: the walk ends, the program's own fault handler
// works, signals are blocked as before.
void bad_stack(char**) {
  struct sigaction action = {};
  action.sa_sigaction = [](int, siginfo_t*, void*) {
    own_faults = own_faults + 1;
    siglongjmp(after_fault, 1);
  };
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  start("freq=10000");
  for (int n = 0; n < 20; n++) {
    constexpr size_t kStack = 256 * 1024;
    auto* memory = static_cast<char*>(mmap(nullptr, kStack + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    munmap(memory + kStack, 8192);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, memory, kStack);
    pthread_t thread;
    expect(pthread_create(&thread, &attributes,
                          [](void*) -> void* {
                            work_until(now_seconds() + 0.02);
                            return nullptr;
                          },
                          nullptr) == 0,
           "pthread_create failed");
    pthread_join(thread, nullptr);
    munmap(memory, kStack);
  }
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (int signal = 1; signal < 32; signal++) expect(sigismember(&mask, signal) == 0, "a signal is blocked that was not");
  char* const nowhere = static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (sigsetjmp(after_fault, 1) == 0) *static_cast<volatile char*>(nowhere) = 1;
  expect(own_faults == 1, "the program's own fault handler did not run");
  stop();
}

// errno and the values of every register survive a storm of samples.
void kept(char**) {
  start("freq=10000");
  const double deadline = now_seconds() + 1;
  uint64_t sum = 0, wanted = 0;
  for (uint64_t n = 0; now_seconds() < deadline; n++) {
    errno = 77;
    double x = static_cast<double>(n % 1000);
    for (int k = 0; k < 2000; k++) x = x * 1.0 + 1.0;
    sum += static_cast<uint64_t>(x);
    wanted += n % 1000 + 2000;
    expect(errno == 77, "errno was changed");
  }
  stop();
  expect(sum == wanted, "a register was changed");
}

// The main thread ends first, in another folder than the one the session began in.
void left(char**) {
  start("out=left.folded,freq=1000");
  expect(chdir("/") == 0, "chdir failed");
  pthread_t thread;
  expect(pthread_create(&thread, nullptr,
                        [](void*) -> void* {
                          work_until(now_seconds() + 0.3);
                          return nullptr;
                        },
                        nullptr) == 0,
         "pthread_create failed");
  pthread_exit(nullptr);
}

struct Case {
  const char* name;
  void (*run)(char** arguments);
};
const Case kCases[] = {
    {"shares", shares},     {"rate", rate},   {"overflow", overflow}, {"churn", churn},           {"jump", jump},
    {"names", names},       {"fibers", fibers}, {"everything", everything}, {"restart", restart}, {"storm", storm},
    {"forks", forks},       {"large_fork", large_fork}, {"spawn", spawn}, {"own_signals", own_signals},
    {"interrupted", interrupted}, {"restarted", restarted}, {"bad_stack", bad_stack}, {"kept", kept},
    {"sample_rate", sample_rate}, {"spikes", spikes},
    {"malloc_in_handler", malloc_in_handler}, {"wall", wall}, {"closed", closed},
    {"left", left},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Case& one : kCases) {
    if (argc < 2 || strcmp(one.name, argv[1]) != 0) continue;
    one.run(argv + 2);
    return 0;
  }
  give_up("no such case");
}
