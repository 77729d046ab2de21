#include "embed/session.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/format.h>

#include "base/clock.h"
#include "collect/inproc/handler.h"
#include "embed/import_hooks.h"
#include "embed/scopes.h"

namespace cprof::embed {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kScanNs = 20 * kMs, kCalibrationNs = 100 * kMs, kCheckNs = 500 * kMs;
constexpr uint64_t kShortestWaitNs = 2 * kMs, kLongestWaitNs = 20 * kMs;

// The signal that takes samples: its default action is to do nothing, debuggers pass it on, and hardly any program uses it.
// Where one does, the next. 0: all are taken.
int choose_signal() {
  for (int signal : {SIGURG, SIGPROF, SIGSTKFLT}) {
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    if (now.sa_sigaction == inproc::on_sampling_signal) return signal;
    if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return signal;
  }
  return 0;
}

Result<int> install_handler() {
  static int installed = 0;
  struct sigaction now = {};
  if (installed && sigaction(installed, nullptr, &now) == 0 && now.sa_sigaction == inproc::on_sampling_signal) return installed;
  const int signal = choose_signal();
  if (!signal) return fail("SIGURG, SIGPROF and SIGSTKFLT all have handlers of the program: no signal is left to sample with");
  struct sigaction action = {}, before = {};
  action.sa_sigaction = inproc::on_sampling_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  inproc::handler_setting.signal = signal;
  inproc::handler_setting.process_id = getpid();
  if (sigaction(signal, &action, &before) != 0) return fail_errno("the handler of the sampling signal");
  const bool had_handler = before.sa_flags & SA_SIGINFO && before.sa_sigaction != inproc::on_sampling_signal;
  inproc::handler_setting.previous = had_handler ? before.sa_sigaction : nullptr;
  return installed = signal;
}

}  // namespace

Session::Session(Options options, Surroundings surroundings)
    : options_(std::move(options)),
      around_(surroundings),
      recording_(options_),
      spikes_(surroundings.limits, clock_, options_.keep_ns) {}

Session::~Session() = default;

Result<void> Session::start() {
  for (const std::string& pattern : options_.outputs) TRY(check_output(pattern));
  TRY(spikes_.add(options_, around_.names));
  if (options_.keep_ns) recording_.watch(spikes_);
  TickClock::choose_source();
  clock_.calibrate();
  start_ns_ = monotonic_ns();
  start_realtime_ns_ = clock_ns(CLOCK_REALTIME);
  set_overwrites(options_.overflow == Overflow::kOverwrite);
  around_.threads.begin_session();
  if (options_.frequency_hz) TRY(start_sampling());
  auto started = start_collector();
  if (!started) {
    end_sampling();
    return started;
  }
  __atomic_store_n(&cprof_enabled_, 1, __ATOMIC_RELEASE);
  return {};
}

Result<void> Session::start_sampling() {
  around_.modules.refresh(false);
  setting_.signal = TRY(install_handler());
  setting_.period_ns = 1'000'000'000 / options_.frequency_hz;
  setting_.with_kernel = options_.with_kernel;
  setting_.kind = options_.mode == Mode::kWall ? inproc::Interrupt::kWallTimer
                  : options_.timers_only       ? inproc::Interrupt::kCpuTimer
                                               : inproc::Interrupt::kPerf;
  int result = around_.threads.start_sampling(setting_);
  if (result < 0 && setting_.kind == inproc::Interrupt::kPerf) {
    fallback_ = fmt::format("perf events are refused ({}): CPU timers instead, which tick {} times a second at most; each sample "
                            "counts for all periods that it stands for",
                            strerror(-result), sysconf(_SC_CLK_TCK) > 250 ? sysconf(_SC_CLK_TCK) : 250);
    setting_.kind = inproc::Interrupt::kCpuTimer;
    result = around_.threads.start_sampling(setting_);
  }
  if (result < 0) return fail(fmt::format("no way to sample this process: {}", strerror(-result)), -result);
  return {};
}

Result<void> Session::start_collector() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the collector inherits it: no signal is handled there
  const int error = pthread_create(
      &collector_, nullptr,
      [](void* self) -> void* {
        static_cast<Session*>(self)->collect();
        return nullptr;
      },
      this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error) return fail(fmt::format("the collector thread: {}", strerror(error)), error);
  has_collector_ = true;
  return {};
}

void Session::collect() {
  const int32_t tid = current_tid();
  around_.threads.leave_out(OwnThread::kCollector, tid);
  setpriority(PRIO_PROCESS, static_cast<id_t>(tid), getpriority(PRIO_PROCESS, static_cast<id_t>(tid)) + 1);
  pthread_setname_np(pthread_self(), "cprof");
  uint64_t wait_ns = kShortestWaitNs;
  std::unique_lock lock(mutex_);
  while (!is_done_) {
    asked_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [&] { return request_ != Request::kNone; });
    Request request = request_;
    const std::string path = request_path_;
    const int fd = request_fd_;
    lock.unlock();
    Result<void> answer;
    {
      std::lock_guard work(work_);
      const uint64_t before = recording_.bytes();
      look(request != Request::kNone);
      if (is_program_over_ && request == Request::kNone) request = Request::kStop;
      if (request == Request::kStop) end_sampling();
      report_spike();
      if (request != Request::kNone) answer = answer_to(request, path, fd);
      // Busy rings are looked at again soon; when nothing comes, less and less often.
      wait_ns = recording_.bytes() - before > 64 * 1024 ? kShortestWaitNs : std::min(wait_ns * 2, kLongestWaitNs);
      collector_cpu_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    lock.lock();
    if (request == Request::kNone) continue;
    is_done_ = request == Request::kStop;
    answer_ = std::move(answer);
    request_ = Request::kNone;
    answered_.notify_all();
  }
}

// One round: threads, libraries, rings.
void Session::look(bool is_last) {
  const uint64_t now_ns = monotonic_ns();
  if (is_last || now_ns >= next_calibration_ns_) {
    clock_.calibrate();
    next_calibration_ns_ = now_ns + kCalibrationNs;
  }
  if (is_last || now_ns >= next_check_ns_) {
    around_.threads.read_names();
    is_program_over_ = around_.threads.is_program_over();
    if (options_.frequency_hz && !ended_) check_arming();
    next_check_ns_ = now_ns + kCheckNs;
  }
  if (options_.frequency_hz && (is_last || now_ns >= next_scan_ns_)) {
    around_.threads.scan();
    const uint32_t before = around_.modules.generation();
    around_.modules.refresh(recording_.take_unknown_code());
    if (around_.modules.generation() != before) hook_imports();
    next_scan_ns_ = now_ns + kScanNs;
  }
  turn_window(now_ns);
  const uint64_t epoch = inproc::handler_setting.epoch.load(std::memory_order_seq_cst);
  around_.threads.for_each([&](LiveThread& thread) {
    recording_.drain(thread, around_.modules);
    if (is_last) recording_.note_open_scopes(thread);
  });
  // Handlers that began before this epoch have left, and what they wrote was taken above or will be by the list they saw.
  if (around_.modules.has_old() && around_.threads.all_handlers_left(epoch)) {
    around_.threads.for_each([&](LiveThread& thread) { recording_.drain(thread, around_.modules); });
    around_.modules.forget_old();
  }
  around_.threads.recycle_ended();
  forget_old();
  end_ns_ = monotonic_ns();
}

void Session::forget_old() {
  const uint64_t now_ns = monotonic_ns();
  if (options_.keep_ns && now_ns > start_ns_ + options_.keep_ns) recording_.forget_before(clock_.to_ticks(now_ns - options_.keep_ns));
}

void Session::report_spike() {
  const auto spike = spikes_.take(monotonic_ns());
  if (!spike || options_.outputs.empty()) return;
  around_.threads.for_each([&](LiveThread& thread) { recording_.note_open_scopes(thread); });
  const StoredThread& thread = recording_.threads()[spike->thread];
  spike_reports_++;
  auto written = write_outputs("", -1, fmt::format("scope '{}' in thread {} ({}) lasted {:.3f} ms, its limit is {:.3f} ms",
                                                   around_.names.name(spike->name), thread.name, thread.tid,
                                                   static_cast<double>(spike->lasted_ns) / 1e6,
                                                   static_cast<double>(spike->limit_ns) / 1e6));
  if (!written) failed_report_ = written.error().message;
}

// Where scopes have limits, only what exceeds them makes files, and who asks for one.
Result<void> Session::answer_to(Request request, const std::string& path, int fd) {
  if (request == Request::kStop && options_.keep_ns && spikes_.has_limits()) return {};
  return write_outputs(path, fd);
}

// Programs take signals for themselves, and close descriptors that they did not open.
void Session::check_arming() {
  if (has_no_signal_) return;
  renewed_events_ += around_.threads.renew_closed_events();
  struct sigaction now = {};
  sigaction(setting_.signal, nullptr, &now);
  if (now.sa_sigaction == inproc::on_sampling_signal) return;
  // While the old signal is still ours to recognise the events by.
  around_.threads.stop_sampling();
  taken_signals_++;
  auto signal = install_handler();
  has_no_signal_ = !signal;
  if (has_no_signal_) return;
  setting_.signal = *signal;
  around_.threads.rearm(setting_);
}

void Session::turn_window(uint64_t now_ns) {
  if (!options_.window_period_ns || ended_) return;
  const bool is_on = (now_ns - start_ns_) % options_.window_period_ns < options_.window_on_ns;
  if (is_on == window_is_on_) return;
  window_is_on_ = is_on;
  around_.threads.set_running(is_on);
  __atomic_store_n(&cprof_enabled_, is_on, __ATOMIC_RELEASE);
}

void Session::end_sampling() {
  if (ended_) return;
  ended_ = true;
  __atomic_store_n(&cprof_enabled_, 0, __ATOMIC_RELEASE);
  around_.threads.stop_sampling();
  // No handler runs on, and what the last ones wrote is taken.
  inproc::handler_setting.modules.store(nullptr, std::memory_order_seq_cst);
  const uint64_t epoch = inproc::handler_setting.epoch.fetch_add(1, std::memory_order_seq_cst) + 1;
  for (int n = 0; n < 1000 && !around_.threads.all_handlers_left(epoch); n++) usleep(1000);
  around_.threads.for_each([&](LiveThread& thread) {
    recording_.drain(thread, around_.modules);
    recording_.note_open_scopes(thread);
  });
  clock_.calibrate();
  end_ns_ = monotonic_ns();
}

OwnCost Session::own_cost() {
  OwnCost cost;
  std::array<uint64_t, inproc::kCostBuckets> buckets{};
  uint64_t total = 0, ticks = 0;
  around_.threads.for_each([&](LiveThread& thread) {
    for (uint32_t n = 0; n < inproc::kCostBuckets; n++) {
      buckets[n] += thread.state->cost[n].load(std::memory_order_relaxed);
      total += thread.state->cost[n].load(std::memory_order_relaxed);
    }
    ticks += thread.state->cost_ticks.load(std::memory_order_relaxed);
  });
  const uint64_t now = cprof_ticks_();
  const auto in_ns = [&](uint64_t count) { return clock_.to_ns(now) - clock_.to_ns(now - std::min(now, count)); };
  uint64_t below = 0;
  for (uint32_t n = 0; n < inproc::kCostBuckets && total; n++) {
    const uint64_t before = below;
    below += buckets[n];
    const uint64_t upper = in_ns(n < 8 ? 4 : uint64_t{n % 4 + 5} << (n / 4 - 2));
    if (before * 2 < total && below * 2 >= total) cost.handler_p50_ns = upper;
    if (before * 100 < total * 99 && below * 100 >= total * 99) cost.handler_p99_ns = upper;
  }
  cost.handler_total_ns = in_ns(ticks);
  cost.collector_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  cost.ring_bytes = recording_.counts().samples * 64 + recording_.counts().written * sizeof(cprof_record);
  cost.table_builds = around_.modules.builds();
  cost.table_build_ns = around_.modules.build_ns();
  return cost;
}

double Session::delivered_hz() const {
  double seconds = static_cast<double>(recording_.cpu_ns()) / 1e9;
  if (options_.mode == Mode::kWall)
    seconds = static_cast<double>(end_ns_ - start_ns_) / 1e9 * static_cast<double>(recording_.threads_seen());
  return seconds > 0 ? static_cast<double>(recording_.counts().samples) / seconds : 0;
}

SessionFacts Session::facts() {
  SessionFacts facts{.program = around_.output.program,
                     .event = setting_.kind == inproc::Interrupt::kPerf       ? "perf task-clock"
                              : setting_.kind == inproc::Interrupt::kCpuTimer ? "CPU timers"
                                                                              : "wall-clock timers",
                     .start_ns = start_ns_,
                     .end_ns = end_ns_,
                     .start_realtime_ns = start_realtime_ns_,
                     .since_ns = options_.keep_ns && end_ns_ > options_.keep_ns ? end_ns_ - options_.keep_ns : 0,
                     .cause = {},
                     .frequency_hz = options_.frequency_hz,
                     .delivered_hz = delivered_hz(),
                     .is_wall = options_.mode == Mode::kWall,
                     .cost = own_cost(),
                     .losses = {}};
  add_losses(facts.losses);
  return facts;
}

void Session::add_losses(Diagnostics& losses) const {
  if (!fallback_.empty()) losses.add("perf_events_refused", Severity::kNotice, fallback_);
  if (spikes_.spikes() > spike_reports_)
    losses.add("spikes_without_report", Severity::kInfo, "scopes over their limit that have no report of their own: others were written",
               spikes_.spikes() - spike_reports_);
  if (renewed_events_)
    losses.add("events_closed_by_program", Severity::kNotice,
                     "perf events that the program closed with other descriptors; they were made again within half a second",
                     renewed_events_);
  if (taken_signals_)
    losses.add("sampling_signal_taken", Severity::kNotice,
                     "the program put a handler of its own on the sampling signal; another one is used since", taken_signals_);
  if (has_no_signal_)
    losses.add("no_sampling_signal", Severity::kDataLoss,
                     "the program took every signal that could be sampled by; no samples were taken from then on");
  if (around_.threads.timer_threads())
    losses.add("threads_without_event", Severity::kNotice, "threads sampled by CPU timers, as no perf event was left for them",
                     around_.threads.timer_threads());
}

Result<void> Session::write_outputs(const std::string& path, int fd, const std::string& cause) {
  if (path.empty() && options_.outputs.empty()) return {};
  SessionFacts known = facts();
  known.cause = cause;
  const profile::Profile profile = make_profile(recording_, around_.modules, around_.names, clock_, known);
  if (fd >= 0) return write_profile_onto(fd, profile, path);
  if (!path.empty()) return write_profile(profile, path, path);
  // Of a flight recorder every report is another one's.
  OutputName name = around_.output;
  name.number += reports_;
  reports_ += options_.keep_ns != 0;
  for (const std::string& pattern : options_.outputs) TRY(write_profile(profile, pattern, expand_name(pattern, name)));
  return {};
}

Result<void> Session::ask(Request request, const std::string& path, int fd) {
  std::unique_lock lock(mutex_);
  answered_.wait(lock, [&] { return request_ == Request::kNone; });
  if (is_done_ && request == Request::kStop) return std::move(answer_);  // it has ended with the program's last thread
  if (is_done_) return fail("no session runs");
  request_ = request;
  request_path_ = path;
  request_fd_ = fd;
  asked_.notify_all();
  answered_.wait(lock, [&] { return request_ == Request::kNone; });
  return std::move(answer_);
}

Result<void> Session::stop() {
  Result<void> result = ask(Request::kStop, "");
  if (has_collector_) pthread_join(collector_, nullptr);
  has_collector_ = false;
  return result;
}

Result<void> Session::dump(const std::string& path) {
  if (!path.empty()) TRY(check_output(path));
  return ask(Request::kDump, path);
}

Result<void> Session::dump_onto(int fd, const std::string& name) {
  TRY(check_output(name));
  return ask(Request::kDump, name, fd);
}

void Session::fill(cprof_status& status) {
  std::lock_guard work(work_);
  const RecordingCounts& counts = recording_.counts();
  status.event_kind = options_.frequency_hz ? static_cast<int>(setting_.kind) : 0;
  status.frequency_hz = options_.frequency_hz;
  status.threads = static_cast<uint32_t>(recording_.threads_seen());
  status.samples = counts.samples;
  status.samples_lost = counts.samples_lost;
  status.scopes_written = counts.written;
  status.scopes_lost = counts.lost;
  status.cpu_ns = recording_.cpu_ns();
  status.delivered_hz = delivered_hz();
}

std::string Session::summary() {
  std::lock_guard work(work_);
  const RecordingCounts& counts = recording_.counts();
  std::string text = fmt::format("{} samples ({} lost) of {:.2f} s CPU in {} threads, {} Hz asked, {:.1f} Hz delivered; {} scopes ({} lost)",
                                 counts.samples, counts.samples_lost, static_cast<double>(recording_.cpu_ns()) / 1e9,
                                 recording_.threads_seen(), options_.frequency_hz, delivered_hz(), counts.written, counts.lost);
  if (options_.keep_ns && spikes_.has_limits())
    text += fmt::format("; {} scopes over their limit, {} reports", spikes_.spikes(), spike_reports_);
  if (!failed_report_.empty()) text += fmt::format("; a report was not written: {}", failed_report_);
  if (!fallback_.empty()) text += "; " + fallback_;
  return text;
}

}  // namespace cprof::embed
