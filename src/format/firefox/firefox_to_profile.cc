// A sample counts 1 unless the file weighs it. Where every thread tells the CPU time of its samples and weighs none, that
// time is the weight, so that both readings come from one metric; else CPU time is a metric beside.
#include "format/firefox/firefox_to_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "format/firefox/firefox_markers.h"
#include "format/firefox/firefox_stacks.h"
#include "format/values.h"
#include "format/words.h"

namespace cprof::format {
namespace {

constexpr int64_t kMillion = 1'000'000;  // weights are kept times that,
constexpr int64_t kThousand = 1'000;     // CPU times and counts times that

// "123", "123.4": the leading number; 0 when there is none.
int32_t id_of(std::string_view text) {
  int32_t id = 0;
  take_number(text, id);
  return std::max(id, 0);
}

bool is_weighed(const FirefoxSamples& samples) {
  return samples.weight_type != "samples" || std::ranges::any_of(samples.weight, [](int64_t w) { return w != kMillion && w != kNoNumber; });
}

int64_t divided(int64_t value, int64_t divisor) {
  const int64_t half = divisor / 2;
  return value / divisor + (value % divisor >= half ? 1 : value % divisor <= -half ? -1 : 0);
}

class Converter {
 public:
  Converter(FirefoxFile file, profile::ProfileBuilder builder) : file_(std::move(file)), builder_(std::move(builder)) {}

  Result<profile::Profile> convert() {
    const std::string name = builder_.profile().run.source;
    auto done = convert_all();
    if (!done) return fail(fmt::format("{}: {}", name, done.error().message));
    return builder_.take();
  }

 private:
  Result<void> convert_all() {
    if (file_.is_raw)
      return fail("not supported: a Gecko profile that was not processed; profiler.firefox.com opens and saves it");
    if (!is_profile()) return fail("nothing of the Firefox Profiler in it (meta, shared, threads with a stackTable), nor of a Chrome trace, "
                                    "speedscope or .cpuprofile");
    if (file_.threads.empty() && file_.counters.empty()) return fail("no threads");
    set_run();
    choose_metrics();
    if (file_.has_shared_tables) {
      shared_.emplace(file_.shared, file_.shared.strings, file_, 0, builder_);
      TRY(in(shared_->check(), "shared"));
    }
    for (size_t i = 0; i < file_.threads.size(); ++i)
      TRY(in(add_thread(file_.threads[i]), fmt::format("thread {}", i)));
    for (size_t i = 0; i < file_.counters.size(); ++i) TRY(in(add_counter(file_.counters[i]), fmt::format("counter {}", i)));
    set_end();
    if (builder_.profile().metrics.empty()) add_metric("samples", "count", false);
    return {};
  }

  // Other JSON has threads and a meta too.
  bool is_profile() const {
    if (file_.version != kNoNumber || file_.interval_ns > 0 || file_.has_shared_tables) return true;
    return std::ranges::any_of(file_.threads, [](const FirefoxThread& t) { return !t.tables.stacks.frame.empty(); });
  }

  static Result<void> in(Result<void> result, std::string_view where) {
    if (!result) return std::unexpected(in_context(std::string(where), std::move(result.error())));
    return result;
  }

  void set_run() {
    profile::RunInfo& run = builder_.profile().run;
    run.sampling_interval_ns = file_.is_untimed ? 0 : static_cast<uint64_t>(std::max<int64_t>(file_.interval_ns, 0));
    run.start_realtime_ns = static_cast<uint64_t>(std::max<int64_t>(file_.start_time_ns, 0));
    run.command = file_.product;
    file_.clock_ns = std::clamp<int64_t>(file_.clock_ns, 0, INT64_MAX / 2);
  }

  profile::MetricId add_metric(std::string_view name, std::string_view unit, bool is_time) {
    for (size_t i = 0; i < builder_.profile().metrics.size(); ++i)
      if (builder_.profile().text(builder_.profile().metrics[i].name) == name) return profile::MetricId(i);
    return builder_.add_metric(name, unit, is_time ? builder_.profile().run.sampling_interval_ns : 0, is_time);
  }

  bool has_cycles() const { return file_.cpu_unit.find("cycles") != std::string::npos; }

  void choose_metrics() {
    bool any = false, all_cpu = !file_.is_untimed, any_weighed = false;
    for (const FirefoxThread& thread : file_.threads) {
      if (thread.samples.stack.empty()) continue;
      any = true;
      any_weighed |= is_weighed(thread.samples);
      all_cpu &= std::ranges::any_of(thread.samples.cpu_delta, [](int64_t d) { return d != kNoNumber; });
    }
    weighs_cpu_ = any && all_cpu && !any_weighed;
    is_ours_ = !file_.metric.empty();
    if (!weighs_cpu_) return;
    cpu_metric_ = has_cycles() ? add_metric("cycles", "count", false)
                               : add_metric(is_ours_ ? file_.metric : "cpu", "nanoseconds", true);
  }

  profile::MetricId main_metric(const FirefoxSamples& samples) {
    if (weighs_cpu_) return cpu_metric_;
    if (is_ours_) return add_metric(file_.metric, file_.metric_unit, false);
    if (samples.weight_type == "tracing-ms") return add_metric("wall", "nanoseconds", false);
    if (samples.weight_type == "bytes") return add_metric("bytes", "bytes", false);
    return add_metric("samples", "count", false);
  }

  // In nanoseconds or cycles; cpu_delta is times 1000.
  int64_t cpu_of(const FirefoxSamples& samples, size_t i) const {
    const int64_t delta = i < samples.cpu_delta.size() ? samples.cpu_delta[i] : kNoNumber;
    if (delta == kNoNumber) return 0;
    return has_cycles() || file_.cpu_unit == "ns" ? divided(delta, kThousand) : delta;  // µs: thousandths are ns
  }

  int64_t weight_of(const FirefoxSamples& samples, size_t i) const {
    const int64_t weight = i < samples.weight.size() ? samples.weight[i] : kNoNumber;
    if (weight == kNoNumber) return 1;
    return samples.weight_type == "tracing-ms" ? weight : divided(weight, kMillion);
  }

  Result<void> add_thread(FirefoxThread& thread) {
    const auto& strings = file_.shared.strings.empty() ? thread.tables.strings : file_.shared.strings;
    FirefoxStacks own(thread.tables, strings, file_, thread.first_lib, builder_);
    if (!shared_) TRY(own.check());
    FirefoxStacks& stacks = shared_ ? *shared_ : own;
    const profile::ThreadId id = new_thread(thread);
    if (!thread.samples.stack.empty()) TRY(add_samples(thread.samples, stacks, id, main_metric(thread.samples), true));
    if (!thread.js_allocations.stack.empty())
      TRY(add_samples(thread.js_allocations, stacks, id, add_metric("js-allocations", "bytes", false), false));
    if (!thread.native_allocations.stack.empty())
      TRY(add_samples(thread.native_allocations, stacks, id, add_metric("native-allocations", "bytes", false), false));
    TRY(add_markers(thread.markers, strings, file_, id, builder_));
    thread = {};
    return {};
  }

  profile::ThreadId new_thread(const FirefoxThread& thread) {
    const std::string& process_name = thread.process_name.empty() ? thread.name : thread.process_name;
    auto [process, is_new] = processes_.try_emplace(thread.pid);
    if (is_new) process->second = builder_.add_process(id_of(thread.pid), process_name, time(thread.start_ns));
    profile::Process& row = builder_.profile().processes[process->second.index()];
    if (thread.is_main) row.name = builder_.intern(process_name);
    const auto id = builder_.add_thread(process->second, id_of(thread.tid), thread.name, time(thread.start_ns));
    if (thread.end_ns != kNoNumber) builder_.profile().threads[id.index()].end_ns = time(thread.end_ns);
    return id;
  }

  uint64_t time(int64_t ns) {
    int64_t at = 0;
    if (ns == kNoNumber || __builtin_add_overflow(file_.clock_ns, ns, &at) || at < 0) return 0;
    return static_cast<uint64_t>(at);
  }

  // Absolute times; none when the table has none.
  Result<NumberColumn> times_of(const NumberColumn& times, const NumberColumn& deltas, size_t size) const {
    if (times.empty() && deltas.empty()) return NumberColumn();
    const NumberColumn& told = times.empty() ? deltas : times;
    if (told.size() != size) return fail(fmt::format("{} samples and {} times of them", size, told.size()));
    if (!times.empty()) return times;
    NumberColumn sums;
    sums.reserve(size);
    int64_t now = 0;
    for (int64_t delta : deltas) {
      if (delta != kNoNumber && __builtin_add_overflow(now, delta, &now)) return fail("times that 64 bits do not hold");
      sums.push_back(now);
    }
    return sums;
  }

  Result<void> add_samples(const FirefoxSamples& samples, FirefoxStacks& stacks, profile::ThreadId thread,
                           profile::MetricId metric, bool is_main) {
    const size_t size = samples.stack.size();
    const bool is_timed = !file_.is_untimed && file_.time_unit == "ms";
    const NumberColumn times = is_timed ? TRY(times_of(samples.time_ns, samples.delta_ns, size)) : NumberColumn();
    const bool has_cpu = is_main && !weighs_cpu_ && !is_ours_ && !samples.cpu_delta.empty() && !times.empty();
    const profile::MetricId beside =
        has_cpu ? add_metric("thread-cpu", has_cycles() ? "count" : "nanoseconds", false) : profile::MetricId();
    for (size_t i = 0; i < size; ++i) {
      const profile::CallSiteId site = TRY(stacks.site(samples.stack[i]));
      const int64_t weight = is_main && weighs_cpu_ ? cpu_of(samples, i) : weight_of(samples, i);
      if (times.empty()) {
        builder_.add_aggregate({.site = site, .metric = metric, .value = weight, .thread = owner(thread)});
        continue;
      }
      profile::Sample sample{.time_ns = time(times[i]), .weight = weight, .thread = thread, .site = site, .metric = metric};
      builder_.add_sample(sample);
      if (!has_cpu) continue;
      sample.metric = beside;
      sample.weight = cpu_of(samples, i);
      builder_.add_sample(sample);
    }
    return {};
  }

  // Our writer makes a thread up for values without one.
  profile::ThreadId owner(profile::ThreadId thread) {
    const profile::Thread& row = builder_.profile().threads[thread.index()];
    return file_.is_untimed && row.tid == 0 ? profile::ThreadId() : thread;
  }

  Result<void> add_counter(const FirefoxCounter& counter) {
    const NumberColumn times = TRY(times_of(counter.time_ns, counter.delta_ns, counter.count.size()));
    if (times.empty()) return {};
    profile::Profile& p = builder_.profile();
    profile::Track track{.name = builder_.intern(counter.name)};
    auto process = processes_.find(counter.pid);
    if (process != processes_.end()) track.process = process->second;
    const bool is_memory = counter.category == "Memory";
    const bool is_sum = counter.graph == "line-accumulated" || (counter.graph.empty() && is_memory);
    if (is_memory) track.unit = builder_.intern("bytes");
    p.tracks.push_back(track);
    int64_t sum = 0;  // times 1000
    for (size_t i = 0; i < times.size(); ++i) {
      if (counter.count[i] == kNoNumber) continue;
      sum = is_sum ? add_clamped(sum, counter.count[i]) : counter.count[i];
      p.counters.push_back({.track = profile::TrackId(p.tracks.size() - 1), .time_ns = time(times[i]),
                            .value = static_cast<double>(sum) / static_cast<double>(kThousand)});
    }
    return {};
  }

  void set_end() {
    profile::Profile& p = builder_.profile();
    if (!p.metrics.empty()) p.run.default_metric = p.metrics[0].name;
    uint64_t start = UINT64_MAX, end = 0;
    const auto widen = [&](uint64_t from, uint64_t to) {
      start = std::min(start, from);
      end = std::max(end, to);
    };
    for (const profile::Sample& s : p.samples) widen(s.time_ns, s.time_ns);
    for (const profile::Slice& s : p.slices) widen(s.start_ns, s.start_ns + s.duration_ns);
    for (const profile::Mark& m : p.marks) widen(m.time_ns, m.time_ns);
    if (end == 0) return;
    p.run.start_ns = start;
    p.run.end_ns = end;
    for (profile::Slice& s : p.slices)
      if (s.is_open) s.duration_ns = end - s.start_ns;
  }

  FirefoxFile file_;
  profile::ProfileBuilder builder_;
  std::optional<FirefoxStacks> shared_;
  std::map<std::string, profile::ProcessId> processes_;
  profile::MetricId cpu_metric_;
  bool weighs_cpu_ = false, is_ours_ = false;
};

}  // namespace

Result<profile::Profile> firefox_to_profile(FirefoxFile file, profile::ProfileBuilder builder) {
  return Converter(std::move(file), std::move(builder)).convert();
}

}  // namespace cprof::format
