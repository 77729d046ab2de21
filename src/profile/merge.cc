// First what the inputs have in common is decided: which metrics stay and in which unit, and how far each input's clock is
// from the first one's. Then one input after the other is copied and freed.
#include "profile/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "profile/transfer.h"

namespace cprof::profile {
namespace {

struct TimeUnit {
  std::string_view name;
  int64_t ns = 0;
};
constexpr std::array<TimeUnit, 4> kTimeUnits = {
    {{"nanoseconds", 1}, {"microseconds", 1'000}, {"milliseconds", 1'000'000}, {"seconds", 1'000'000'000}}};

int64_t ns_of(std::string_view unit) {
  const auto found = std::ranges::find(kTimeUnits, unit, &TimeUnit::name);
  return found == kTimeUnits.end() ? 0 : found->ns;
}

// Metrics of one name and kind of unit are one metric: "cpu" in milliseconds and in nanoseconds.
using MetricKey = std::pair<std::string, std::string>;

MetricKey key_of(const Profile& profile, const Metric& metric) {
  const std::string_view unit = profile.text(metric.unit);
  return {std::string(profile.text(metric.name)), ns_of(unit) != 0 ? "time" : std::string(unit)};
}

bool has_values(const Profile& p) {
  return !p.samples.empty() || !p.aggregates.empty() || !p.off_cpu.empty() || !p.on_cpu.empty() || !p.slices.empty() ||
         !p.marks.empty() || !p.counters.empty();
}

bool is_untimed(const Profile& p) { return !p.timed() && !p.aggregates.empty(); }

int64_t scaled(int64_t value, int64_t factor, Diagnostics& diagnostics) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(value, factor, &product)) return product;
  diagnostics.add("value_overflow", Severity::kDataLoss,
                  "sums of a stack's values left the range of 64 bits and stand at its limit");
  return value < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

// The names joined by ", ", each once.
void join(std::string& names, std::string_view name) {
  if (name.empty()) return;
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find(", ", at), names.size());
    if (std::string_view(names).substr(at, end - at) == name) return;
    at = end + 2;
  }
  names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
}

class Merger {
 public:
  Merger(std::vector<MergeInput> inputs, const MergeOptions& options) : inputs_(std::move(inputs)), options_(options) {}

  Profile run() {
    make_names_unique();
    keep_useful();
    choose_metrics();
    choose_clocks();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      copy(i);
      inputs_[i].profile = {};
    }
    into_.profile().run.default_metric = into_.intern(default_metric_);
    return into_.take();
  }

 private:
  struct Chosen {
    MetricId id{};
    int64_t ns = 0;  // of its unit; 0: not a time
  };

  void note(std::string_view name, std::string_view description, std::string_view example) {
    into_.profile().diagnostics.add(name, Severity::kNotice, description, 1, example);
  }

  void make_names_unique() {
    std::map<std::string, int> seen;
    for (MergeInput& input : inputs_)
      if (const int times = ++seen[input.name]; times > 1) input.name += fmt::format("#{}", times);
  }

  // Inputs without values only leave what was said of them; but all of them empty, the first one is the profile.
  void keep_useful() {
    const bool any = std::ranges::any_of(inputs_, [](const MergeInput& i) { return has_values(i.profile); });
    std::vector<MergeInput> useful;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (any ? has_values(inputs_[i].profile) : i == 0) {
        useful.push_back(std::move(inputs_[i]));
      } else {
        into_.profile().diagnostics.merge(inputs_[i].profile.diagnostics);
        note("merge_empty_input", "an input holds no values, so it adds nothing", inputs_[i].name);
      }
    }
    inputs_ = std::move(useful);
  }

  void choose_metrics() {
    if (!options_.keep_all_metrics) leave_out_partial_metrics();
    std::set<MetricKey> made;
    for (const MergeInput& input : inputs_)
      for (const Metric& metric : input.profile.metrics) {
        const MetricKey key = key_of(input.profile, metric);
        if (!is_left_out(input.profile, key)) add_metric(input.profile, metric, chosen_[key], made.insert(key).second);
      }
    for (const MergeInput& input : inputs_)
      if (default_metric_.empty()) default_metric_ = default_of(input.profile);
  }

  std::string default_of(const Profile& profile) const {
    const std::string_view name = profile.text(profile.run.default_metric);
    for (const Metric& metric : profile.metrics)
      if (profile.text(metric.name) == name && !is_left_out(profile, key_of(profile, metric))) return std::string(name);
    return {};
  }

  void add_metric(const Profile& from, const Metric& metric, Chosen& chosen, bool is_new) {
    const int64_t ns = ns_of(from.text(metric.unit));
    if (is_new) {
      chosen = {into_.add_metric(from.text(metric.name), from.text(metric.unit), metric.period, metric.is_time), ns};
      return;
    }
    Metric& known = into_.profile().metrics[chosen.id.index()];
    known.is_time |= metric.is_time;
    if (known.period != metric.period || chosen.ns != ns) known.period = 0;
    if (chosen.ns <= ns) return;
    known.unit = into_.intern(from.text(metric.unit));
    chosen.ns = ns;
  }

  void leave_out_partial_metrics() {
    std::map<MetricKey, std::vector<size_t>> owners;
    size_t untimed = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!is_untimed(inputs_[i].profile)) continue;
      ++untimed;
      for (const Metric& metric : inputs_[i].profile.metrics) {
        auto& list = owners[key_of(inputs_[i].profile, metric)];
        if (list.empty() || list.back() != i) list.push_back(i);
      }
    }
    const bool any_common = std::ranges::any_of(owners, [&](const auto& o) { return o.second.size() == untimed; });
    if (untimed < 2 || !any_common) return;
    for (const auto& [key, list] : owners) {
      if (list.size() == untimed) continue;
      left_out_.insert(key);
      note("merge_metric_left_out",
           "metrics that not every input has were left out, since their sums would be those of a part", key.first);
    }
  }

  bool is_left_out(const Profile& profile, const MetricKey& key) const {
    return is_untimed(profile) && left_out_.contains(key);
  }

  static bool knows_clock(const RunInfo& run) { return run.start_ns != 0 && run.start_realtime_ns != 0; }

  // Times out of files may be anything.
  static int64_t clamped(__int128 value) {
    return static_cast<int64_t>(std::clamp<__int128>(value, -std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()));
  }

  // Where the monotonic clock's zero lies in real time.
  static __int128 epoch_of(const RunInfo& run) { return __int128{run.start_realtime_ns} - run.start_ns; }

  void choose_clocks() {
    constexpr int64_t kSameBoot = 2'000'000'000;  // real time is adjusted while a machine runs
    shifts_.assign(inputs_.size(), 0);
    const Profile* first = nullptr;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Profile& profile = inputs_[i].profile;
      if (!profile.timed()) continue;
      if (!first) {
        first = &profile;
        continue;
      }
      if (!knows_clock(first->run) || !knows_clock(profile.run)) {
        shifts_[i] = clamped(__int128{start_of(*first)} - start_of(profile));
        note("merge_clock_unknown",
             "inputs whose clocks cannot be compared were laid side by side: both start at the same moment", inputs_[i].name);
        continue;
      }
      const int64_t distance = clamped(epoch_of(profile.run) - epoch_of(first->run));
      const bool same_boot = profile.run.hostname == first->run.hostname && std::abs(distance) < kSameBoot;
      shifts_[i] = same_boot ? 0 : distance;
    }
    avoid_negative_times();
  }

  static uint64_t start_of(const Profile& profile) {
    uint64_t start = profile.run.start_ns != 0 || profile.samples.empty() ? profile.run.start_ns : profile.samples[0].time_ns;
    for (const OffCpuInterval& off : profile.off_cpu) start = std::min(start, off.start_ns);
    for (const SwitchInterval& on : profile.on_cpu) start = std::min(start, on.start_ns);
    return start;
  }

  // An input from before the first one's machine was started would begin before 0.
  void avoid_negative_times() {
    __int128 lowest = 0;
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (shifts_[i] < 0) lowest = std::min(lowest, __int128{start_of(inputs_[i].profile)} + shifts_[i]);
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].profile.timed()) shifts_[i] = clamped(shifts_[i] - lowest);
  }

  void copy(size_t index) {
    const Profile& from = inputs_[index].profile;
    Transfer transfer(from, into_, places_, shifts_[index]);
    for (size_t i = 0; i < from.metrics.size(); ++i)
      if (const MetricKey key = key_of(from, from.metrics[i]); !is_left_out(from, key))
        transfer.set(MetricId(i), chosen_[key].id);
    for (size_t i = 0; i < from.processes.size(); ++i) transfer.process(ProcessId(i));
    for (size_t i = 0; i < from.threads.size(); ++i) transfer.thread(ThreadId(i));
    for (size_t i = 0; i < from.tracks.size(); ++i) transfer.track(TrackId(i));
    copy_values(from, inputs_[index].name, transfer);
    copy_times(from, transfer);
    into_.profile().diagnostics.merge(from.diagnostics);
    join_run(from, index);
  }

  int64_t factor(const Profile& from, MetricId metric) {
    const Metric& row = from.metrics[metric.index()];
    const int64_t wanted = chosen_[key_of(from, row)].ns;
    return wanted == 0 ? 1 : ns_of(from.text(row.unit)) / wanted;
  }

  void copy_values(const Profile& from, const std::string& name, Transfer& transfer) {
    std::vector<int64_t> factors(from.metrics.size(), 1);
    for (size_t i = 0; i < factors.size(); ++i)
      factors[i] = is_left_out(from, key_of(from, from.metrics[i])) ? 0 : factor(from, MetricId(i));
    Diagnostics& diagnostics = into_.profile().diagnostics;
    for (const Sample& sample : from.samples) {
      Sample row = transfer.moved(sample);
      row.weight = scaled(row.weight, factors[sample.metric.index()], diagnostics);
      into_.add_sample(row);
    }
    for (const Aggregate& aggregate : from.aggregates) {
      const int64_t by = factors[aggregate.metric.index()];
      if (by == 0) continue;
      Aggregate row = transfer.moved(aggregate);
      row.value = scaled(row.value, by, diagnostics);
      if (options_.label_scopes) row.labels = with_scope(transfer.labels_of(aggregate.labels), name);
      into_.add_aggregate(row);
    }
  }

  LabelSetId with_scope(std::vector<Label> labels, const std::string& name) {
    labels.push_back({.key = into_.intern("scope"), .text = into_.intern(name), .unit = kNoText});
    return into_.label_set(labels);
  }

  template <typename Row>
  static void append(Transfer& transfer, const std::vector<Row>& rows, std::vector<Row>& to) {
    to.reserve(to.size() + rows.size());
    for (const Row& row : rows) to.push_back(transfer.moved(row));
  }

  void copy_times(const Profile& from, Transfer& transfer) {
    Profile& to = into_.profile();
    append(transfer, from.on_cpu, to.on_cpu);
    append(transfer, from.off_cpu, to.off_cpu);
    append(transfer, from.breaks, to.breaks);
    append(transfer, from.slices, to.slices);
    append(transfer, from.marks, to.marks);
    append(transfer, from.counters, to.counters);
  }

  void join_run(const Profile& from, size_t index) {
    RunInfo& run = into_.profile().run;
    const RunInfo& other = from.run;
    join(run.source, other.source.empty() ? inputs_[index].name : other.source);
    if (index == 0) {
      const std::string source = run.source;
      run = other;
      run.source = source;
      shift_run(run, shifts_[index]);
      any_timed_ = from.timed();
      return;
    }
    const bool had_timed = any_timed_;
    join(run.command, other.command);
    join(run.hostname, other.hostname);
    join(run.kernel_release, other.kernel_release);
    join_times(from, shifts_[index]);
    if (run.sampling_interval_ns != other.sampling_interval_ns) run.sampling_interval_ns = 0;
    if (from.timed()) {
      run.has_switches = other.has_switches && (run.has_switches || !had_timed);
      run.has_off_cpu = other.has_off_cpu && (run.has_off_cpu || !had_timed);
    }
    run.cpus = std::max(run.cpus, other.cpus);
    run.collector_cpu_ns += other.collector_cpu_ns;
    run.bytes_read += other.bytes_read;
    for (const std::string& comment : other.comments)
      if (std::ranges::find(run.comments, comment) == run.comments.end()) run.comments.push_back(comment);
    if (run.period != other.period || run.period_type != other.period_type || run.period_unit != other.period_unit) {
      run.period = 0;
      run.period_type.clear();
      run.period_unit.clear();
    }
  }

  static void shift_run(RunInfo& run, int64_t shift) {
    for (uint64_t* time : {&run.start_ns, &run.end_ns})
      if (*time != 0) *time = static_cast<uint64_t>(std::clamp<__int128>(__int128{*time} + shift, 0, UINT64_MAX));
  }

  // Timed inputs span from the first start to the last end; untimed ones, which come one after the other as far as anyone
  // knows, add their lengths.
  void join_times(const Profile& from, int64_t shift) {
    RunInfo& run = into_.profile().run;
    RunInfo other = from.run;
    if (other.start_realtime_ns != 0 && (run.start_realtime_ns == 0 || other.start_realtime_ns < run.start_realtime_ns))
      run.start_realtime_ns = other.start_realtime_ns;
    if (!from.timed()) {
      if (!any_timed_) run.end_ns += other.end_ns - other.start_ns;
      return;
    }
    shift_run(other, shift);
    if (!any_timed_) {
      run.start_ns = other.start_ns;
      run.end_ns = other.end_ns;
    }
    run.start_ns = std::min(run.start_ns, other.start_ns);
    run.end_ns = std::max(run.end_ns, other.end_ns);
    any_timed_ = true;
  }

  std::vector<MergeInput> inputs_;
  const MergeOptions& options_;
  ProfileBuilder into_;
  SharedPlaces places_;
  std::map<MetricKey, Chosen> chosen_;
  std::set<MetricKey> left_out_;
  std::vector<int64_t> shifts_;
  std::string default_metric_;
  bool any_timed_ = false;
};

}  // namespace

Profile merge(std::vector<MergeInput> inputs, const MergeOptions& options) {
  return Merger(std::move(inputs), options).run();
}

}  // namespace cprof::profile
