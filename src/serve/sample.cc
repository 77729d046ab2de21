#include "serve/sample.h"

#include <algorithm>
#include <random>

#include "profile/builder.h"

namespace cprof::serve {
namespace {

using namespace profile;

constexpr uint64_t kStart = 1'000'000'000, kLength = 4'000'000'000, kInterval = 1'000'000;

struct CodePlace {
  std::string_view name, module, file;
  uint32_t line;
};
constexpr std::string_view kApp = "/opt/pictures/bin/pictures", kJpeg = "/usr/lib/libturbojpeg.so.0", kLibc = "/usr/lib/libc.so.6",
                           kKernel = "[kernel]";
constexpr CodePlace kCode[] = {
    {"_start", kApp, "", 0}, {"main", kApp, "src/main.cc", 41}, {"Server::run()", kApp, "src/server.cc", 88},
    {"Server::accept_one()", kApp, "src/server.cc", 131}, {"http::parse_request(std::string_view)", kApp, "src/http.cc", 27},
    {"clone3", kLibc, "", 0}, {"Pool::work()", kApp, "src/pool.cc", 52}, {"Pool::next_job()", kApp, "src/pool.cc", 74},
    {"Picture::resize(Size)", kApp, "src/picture.cc", 210}, {"Kernel<float>::convolve(Row const*, Row*, int)", kApp, "src/kernel.h", 33},
    {"clamp_to_byte(float)", kApp, "src/kernel.h", 12}, {"Picture::decode(Bytes)", kApp, "src/picture.cc", 96},
    {"tjDecompress2", kJpeg, "", 0}, {"jsimd_idct_islow_avx2", kJpeg, "", 0}, {"decode_mcu", kJpeg, "", 0},
    {"Picture::encode(int)", kApp, "src/picture.cc", 150}, {"tjCompress2", kJpeg, "", 0}, {"encode_mcu_huff", kJpeg, "", 0},
    {"Cache::find(Key const&)", kApp, "src/cache.cc", 61}, {"std::hash<Key>::operator()(Key const&) const", kApp, "src/cache.h", 19},
    {"malloc", kLibc, "", 0}, {"_int_malloc", kLibc, "", 0}, {"memcpy", kLibc, "", 0}, {"pthread_cond_wait", kLibc, "", 0},
    {"epoll_wait", kLibc, "", 0}, {"write", kLibc, "", 0}, {"Log::flush()", kApp, "src/log.cc", 44}, {"fsync", kLibc, "", 0},
    {"clock_nanosleep", kLibc, "", 0}, {"entry_SYSCALL_64", kKernel, "", 0}, {"do_epoll_wait", kKernel, "", 0},
    {"do_futex", kKernel, "", 0}, {"ksys_write", kKernel, "", 0}, {"tcp_sendmsg", kKernel, "", 0}, {"do_fsync", kKernel, "", 0},
    {"submit_bio_wait", kKernel, "", 0}, {"hrtimer_nanosleep", kKernel, "", 0}, {"asm_exc_page_fault", kKernel, "", 0},
    {"clear_page_erms", kKernel, "", 0},
};

struct Stack {
  int weight;                          // among those of its thread
  std::string_view frames;             // numbers of kCode, root first
  WaitClass wait = WaitClass::kCount;  // kCount: it runs there
  uint64_t mean_ns = 3'000'000;        // how long it stays
};

constexpr Stack kWorker[] = {
    {34, "5 6 8 9", WaitClass::kCount, 6'000'000}, {9, "5 6 8 9 10"}, {16, "5 6 11 12 13", WaitClass::kCount, 4'000'000},
    {9, "5 6 11 12 14"}, {11, "5 6 15 16 17", WaitClass::kCount, 4'000'000}, {4, "5 6 8 22"}, {4, "5 6 18 19"}, {3, "5 6 11 20 21"},
    {4, "5 6 11 20 21 37 38", WaitClass::kCount, 1'000'000}, {12, "5 6 7 23 29 31", WaitClass::kFutex, 7'000'000},
    {5, "5 6 25 29 32 33", WaitClass::kNetwork, 2'000'000}, {3, "5 6 25 29 32 33"},
};
constexpr Stack kMain[] = {
    {30, "0 1 2 3 24 29 30", WaitClass::kPoll, 9'000'000}, {10, "0 1 2 3 4", WaitClass::kCount, 900'000},
    {5, "0 1 2 3 18 19", WaitClass::kCount, 600'000}, {3, "0 1 2 3 24 29 30", WaitClass::kCount, 300'000},
};
constexpr Stack kLog[] = {
    {8, "5 26 28 29 36", WaitClass::kSleep, 90'000'000}, {4, "5 26 27 29 34 35", WaitClass::kIo, 28'000'000},
    {4, "5 26 25 29 32", WaitClass::kCount, 800'000},
};
struct Worker {
  std::string_view name;
  std::span<const Stack> stacks;
  uint64_t starts_ns;
};
constexpr Worker kThreads[] = {{"pictures", kMain, 0},           {"worker-0", kWorker, 40'000'000}, {"worker-1", kWorker, 44'000'000},
                               {"worker-2", kWorker, 47'000'000}, {"worker-3", kWorker, 51'000'000}, {"log", kLog, 60'000'000}};

class Recorder {
 public:
  Profile run() {
    RunInfo& run = b_.profile().run;
    run.tool = "cprof";
    run.command = "pictures --port 8080 (a sample)";
    run.start_ns = kStart;
    run.end_ns = kStart + kLength;
    run.sampling_interval_ns = kInterval;
    run.cpus = 8;
    run.has_switches = run.has_off_cpu = true;
    const ProcessId process = b_.add_process(4711, "pictures", kStart);
    for (size_t i = 0; i < std::size(kThreads); ++i) {
      const Worker& w = kThreads[i];
      live(b_.add_thread(process, static_cast<int32_t>(4711 + i), w.name, kStart + w.starts_ns), w);
    }
    b_.profile().diagnostics.add("sample", Severity::kInfo, "this is a made-up sample: cprof record -- PROGRAM makes a recording of your own");
    return b_.take();
  }

 private:
  CallSiteId site(std::string_view frames) {
    std::vector<LocationId> stack;
    for (size_t at = 0; at < frames.size();) {
      size_t number = 0;
      while (at < frames.size() && frames[at] != ' ') number = 10 * number + static_cast<size_t>(frames[at++] - '0');
      ++at;
      stack.push_back(location(kCode[number]));
    }
    return b_.stack(stack);
  }

  // Where in the function: one of a few lines, so that they can be told apart.
  LocationId location(const CodePlace& code) {
    const MappingId mapping = b_.mapping({.path = b_.intern(code.module)});
    const StringId name = b_.intern(code.name);
    const FunctionId function = b_.function({.name = name, .system_name = name, .file = b_.intern(code.file), .start_line = code.line});
    const Line line{.function = function, .line = code.line == 0 ? 0 : code.line + 2 + random(6)};
    return b_.named_location(mapping, code.module == kKernel ? FrameKind::kKernel : FrameKind::kUser, {&line, 1});
  }

  uint32_t random(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  const Stack& choose(std::span<const Stack> stacks) {
    int all = 0;
    for (const Stack& s : stacks) all += s.weight;
    int left = static_cast<int>(random(static_cast<uint32_t>(all)));
    const Stack* chosen = stacks.data();
    while ((left -= chosen->weight) >= 0) ++chosen;
    return *chosen;
  }

  void live(ThreadId thread, const Worker& w) {
    uint64_t now = kStart + w.starts_ns, on_since = now, next_sample = now + kInterval;
    const auto cpu = thread.value % 8;
    while (now < kStart + kLength) {
      const Stack& what = choose(w.stacks);
      const uint64_t end = std::min(kStart + kLength, now + what.mean_ns / 2 + random(static_cast<uint32_t>(what.mean_ns)));
      if (what.wait == WaitClass::kCount) {
        for (; next_sample < end; next_sample += kInterval)
          b_.add_sample({.time_ns = next_sample, .weight = static_cast<int64_t>(kInterval), .thread = thread, .site = site(what.frames), .cpu = cpu, .metric = clock_});
      } else {
        if (now > on_since) b_.profile().on_cpu.push_back({.thread = thread, .start_ns = on_since, .end_ns = now, .cpu = cpu});
        const uint64_t woken = end - (end - now) / (12 + random(30));
        b_.profile().off_cpu.push_back({.thread = thread, .start_ns = now, .end_ns = end, .woken_ns = woken, .wait_class = what.wait,
                                        .site = site(what.frames), .end = StackEnd::kComplete, .cpu = cpu});
        on_since = end;
        next_sample = end + random(kInterval);
      }
      now = end;
    }
    if (now > on_since) b_.profile().on_cpu.push_back({.thread = thread, .start_ns = on_since, .end_ns = now, .cpu = cpu});
  }

  ProfileBuilder b_;
  MetricId clock_ = b_.add_metric("cpu-clock", "nanoseconds", kInterval, true);
  MetricId off_cpu_ = b_.add_metric(kOffCpuMetric, "nanoseconds");
  std::minstd_rand random_;
};

}  // namespace

Profile sample_profile() { return Recorder().run(); }

}  // namespace cprof::serve
