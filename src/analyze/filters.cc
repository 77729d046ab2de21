#include "analyze/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "analyze/site_filter.h"
#include "analyze/weights.h"
#include "base/container_name.h"
#include "profile/frame_name.h"
#include "profile/transfer.h"

namespace cprof::analyze {
namespace {

using namespace profile;

constexpr size_t kMaxFocus = 64, kMaxLabels = 64;  // one bit each
constexpr size_t kMaxNamed = 12;  // in a message

// Of processes, beside the labels that values have.
constexpr std::string_view kCgroupLabel = "cgroup", kContainerLabel = "container";

struct Suffix {
  std::string_view text;
  double ns = 0;
};
constexpr Suffix kSuffixes[] = {{"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"s", 1e9}, {"", 1e9}};

std::string list_of(const std::set<std::string>& names) {
  std::string list;
  size_t shown = 0;
  for (const std::string& name : names) {
    if (shown++ == kMaxNamed) return fmt::format("{} and {} more", list, names.size() - kMaxNamed);
    list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
  }
  return list;
}

bool is_called(std::string_view name, int32_t id, const std::vector<std::string>& wanted) {
  return std::ranges::any_of(wanted, [&](const std::string& w) { return w == name || w == std::to_string(id); });
}

class RowFilter {
 public:
  RowFilter(const Profile& profile, const Filters& filters) : from_(profile), filters_(filters), sites_(profile, filters) {}

  Result<Profile> run() {
    TRY(choose_threads());
    TRY(choose_times());
    TRY(choose_labels());
    TRY(look_for_python());
    mark_sites();
    copy_run();
    sites_.place(used_sites_, into_, transfer_);
    copy_samples();
    copy_waits();
    copy_lanes();
    note_what_went();
    return into_.take();
  }

 private:
  Result<void> choose_threads() {
    keeps_thread_.assign(from_.threads.size(), true);
    TRY(choose("process", filters_.processes, [&](const Thread& thread) {
      const Process& process = from_.processes[thread.process.index()];
      return std::pair(from_.text(process.name), process.pid);
    }));
    return choose("thread", filters_.threads,
                  [&](const Thread& thread) { return std::pair(from_.text(thread.name), thread.tid); });
  }

  template <typename Identify>
  Result<void> choose(std::string_view what, const std::vector<std::string>& wanted, Identify&& identify) {
    if (wanted.empty()) return {};
    bool any = false;
    std::set<std::string> known;
    for (size_t i = 0; i < from_.threads.size(); ++i) {
      const auto [name, id] = identify(from_.threads[i]);
      const bool is_wanted = is_called(name, id, wanted);
      any |= is_wanted;
      keeps_thread_[i] = keeps_thread_[i] && is_wanted;
      known.insert(fmt::format("{} ({})", name, id));
    }
    if (from_.threads.empty()) return fail(fmt::format("this profile knows no threads or processes, so --{} finds nothing", what));
    if (!any) return fail(fmt::format("no {} {}; there is: {}", what, wanted.front(), list_of(known)));
    return {};
  }

  Result<void> choose_times() {
    if (!filters_.time) return {};
    const bool has_lanes = !from_.slices.empty() || !from_.marks.empty() || !from_.counters.empty();
    if (!from_.timed() && !has_lanes) return fail("this profile has no times, so --time finds nothing");
    const uint64_t start = start_of_times();
    auto shifted = [&](uint64_t ns) { return ns > UINT64_MAX - start ? UINT64_MAX : start + ns; };
    from_ns_ = shifted(filters_.time->from_ns);
    to_ns_ = shifted(filters_.time->to_ns);
    return {};
  }

  uint64_t start_of_times() const {
    if (from_.run.start_ns != 0) return from_.run.start_ns;
    uint64_t start = UINT64_MAX;
    if (!from_.samples.empty()) start = from_.samples.front().time_ns;
    for (const OffCpuInterval& row : from_.off_cpu) start = std::min(start, row.start_ns);
    for (const Slice& row : from_.slices) start = std::min(start, row.start_ns);
    for (const Mark& row : from_.marks) start = std::min(start, row.time_ns);
    for (const CounterValue& row : from_.counters) start = std::min(start, row.time_ns);
    return start == UINT64_MAX ? 0 : start;
  }

  Result<void> choose_labels() {
    if (filters_.labels.empty()) return {};
    found_labels_.assign(from_.label_sets.size(), 0);
    found_processes_.assign(from_.processes.size(), 0);
    for (size_t at = 0; at < filters_.labels.size(); ++at) {
      const LabelFilter& wanted = filters_.labels[at];
      bool has_key = false;
      for (size_t i = 0; i < from_.label_sets.size(); ++i) found_labels_[i] |= uint64_t{has(i, wanted, has_key)} << at;
      for (size_t i = 0; i < from_.processes.size(); ++i)
        found_processes_[i] |= uint64_t{is_in(from_.text(from_.processes[i].cgroup), wanted, has_key)} << at;
      if (!has_key) return fail(no_label(wanted));
      group_filters_ |= uint64_t{wanted.key == kCgroupLabel || wanted.key == kContainerLabel} << at;
    }
    return {};
  }

  std::string no_label(const LabelFilter& wanted) const {
    std::set<std::string> keys;
    for (const Label& label : from_.labels) keys.insert(std::string(from_.text(label.key)));
    for (const Process& process : from_.processes) {
      if (process.cgroup != kNoText) keys.insert(std::string(kCgroupLabel));
      if (!container_id_of(from_.text(process.cgroup)).empty()) keys.insert(std::string(kContainerLabel));
    }
    return keys.empty() ? "this profile has no labels, so --label finds nothing"
                        : fmt::format("no label {}; there is: {}", wanted.key, list_of(keys));
  }

  // What a process has as a label of everything that it does.
  static bool is_in(std::string_view cgroup, const LabelFilter& wanted, bool& has_key) {
    if (wanted.key == kCgroupLabel) {
      has_key |= !cgroup.empty();
      return cgroup == wanted.value;
    }
    if (wanted.key != kContainerLabel) return false;
    has_key |= !container_id_of(cgroup).empty();
    return is_in_container(cgroup, wanted.value);
  }

  Result<void> look_for_python() const {
    if (filters_.python != PythonFrames::kOnly) return {};
    auto is_python = [&](const Function& f) { return is_python_name(from_.text(f.name)); };
    if (std::ranges::any_of(from_.functions, is_python)) return {};
    return fail("this profile names no Python functions, so --python only finds nothing; python -X perf names them, from 3.12 on");
  }

  bool has(size_t set, const LabelFilter& wanted, bool& has_key) const {
    const auto [first, count] = from_.label_sets[set];
    for (uint32_t i = first; i < first + count; ++i) {
      const Label& label = from_.labels[i];
      if (from_.text(label.key) != wanted.key) continue;
      has_key = true;
      const std::string number = std::to_string(label.number);
      if (label.is_number ? number == wanted.value || number + std::string(from_.text(label.unit)) == wanted.value
                          : from_.text(label.text) == wanted.value)
        return true;
    }
    return false;
  }

  // Its process is in another group than the wanted ones.
  bool is_elsewhere(ThreadId thread) const {
    const ProcessId process = process_of(thread);
    if (group_filters_ == 0 || !process.valid() || from_.processes[process.index()].cgroup == kNoText) return false;
    return (found_processes_[process.index()] & group_filters_) != group_filters_;
  }

  bool keeps(ThreadId thread) const {
    if (is_elsewhere(thread)) return false;
    if (filters_.threads.empty() && filters_.processes.empty()) return true;
    return thread.valid() && keeps_thread_[thread.index()];
  }
  bool keeps(LabelSetId labels, ProcessId process) const {
    if (filters_.labels.empty()) return true;
    const uint64_t found = (labels.valid() ? found_labels_[labels.index()] : 0) | (process.valid() ? found_processes_[process.index()] : 0);
    return found == ~uint64_t{0} >> (64 - filters_.labels.size());
  }
  ProcessId process_of(ThreadId thread) const { return thread.valid() ? from_.threads[thread.index()].process : ProcessId(); }
  ProcessId process_of(ThreadId thread, TrackId track) const {
    if (thread.valid() || !track.valid()) return process_of(thread);
    const Track& row = from_.tracks[track.index()];
    return row.process.valid() ? row.process : process_of(row.thread);
  }
  bool keeps_moment(uint64_t ns) const { return !filters_.time || (ns >= from_ns_ && ns < to_ns_); }
  bool keeps_span(uint64_t start, uint64_t end) const {
    return !filters_.time || (start < to_ns_ && (end > from_ns_ || start >= from_ns_));
  }

  // Apart from the thread, whose timeline goes with it, and the time.
  template <typename Row>
  bool keeps_content(const Row& row, LabelSetId labels) const {
    return keeps(labels, process_of(row.thread)) && sites_.keeps(row.site);
  }
  bool keeps(const Sample& row) const { return keeps(row.thread) && keeps_moment(row.time_ns) && keeps_content(row, row.labels); }
  bool keeps(const Aggregate& row) const { return !filters_.time && keeps(row.thread) && keeps_content(row, row.labels); }
  bool keeps(const OffCpuInterval& row) const {
    return keeps(row.thread) && keeps_span(row.start_ns, row.end_ns) && keeps_content(row, {});
  }

  template <typename Row>
  void mark(const std::vector<Row>& rows) {
    for (const Row& row : rows)
      if (row.site.valid() && keeps(row)) used_sites_[row.site.index()] = true;
  }

  void mark_sites() {
    used_sites_.assign(from_.sites.size(), false);
    mark(from_.samples);
    mark(from_.aggregates);
    mark(from_.off_cpu);
  }

  void copy_run() {
    Profile& to = into_.profile();
    to.run = from_.run;
    to.diagnostics.merge(from_.diagnostics);
    for (size_t i = 0; i < from_.metrics.size(); ++i) transfer_.add_metric(MetricId(i));
    to.run.default_metric = transfer_.text(from_.run.default_metric);
    for (size_t i = 0; i < from_.threads.size(); ++i)
      if (keeps(ThreadId(i))) transfer_.thread(ThreadId(i));
    if (!filters_.time) return;
    const uint64_t end = std::max(from_.run.end_ns, from_ns_);
    if (to.run.start_realtime_ns != 0) to.run.start_realtime_ns += filters_.time->from_ns;
    to.run.start_ns = from_ns_;
    to.run.end_ns = std::min(to_ns_, from_.run.end_ns == 0 ? to_ns_ : end);
    if (to.run.end_ns == UINT64_MAX) to.run.end_ns = 0;
  }

  // What is above the first shown frame is left out on purpose: such a stack is not cut.
  StackEnd end_of(CallSiteId site, StackEnd end) const {
    const bool cut = end == StackEnd::kMaxDepth || end == StackEnd::kTruncatedSnapshot;
    return filters_.show_from && site.valid() && cut ? StackEnd::kComplete : end;
  }

  // A sample that goes leaves a break in its thread's timeline; one that goes with its thread or time does not.
  void copy_samples() {
    for (const Sample& sample : from_.samples) {
      if (!keeps(sample.thread) || !keeps_moment(sample.time_ns)) {
        ++samples_gone_;
        continue;
      }
      Sample row = sample;
      row.end = end_of(sample.site, sample.end);
      if (keeps_content(sample, sample.labels)) {
        into_.add_sample(transfer_.moved(row));
      } else {
        add_break(sample.thread, sample.time_ns, sample.metric);
        ++samples_gone_;
      }
    }
    for (const Break& row : from_.breaks)
      if (keeps(row.thread) && keeps_moment(row.time_ns)) add_break(row.thread, row.time_ns, row.metric);
    if (filters_.time && to_ns_ != UINT64_MAX) end_threads();
    for (const Aggregate& aggregate : from_.aggregates) {
      if (!keeps(aggregate)) {
        ++values_gone_;
        continue;
      }
      Aggregate row = transfer_.moved(aggregate);
      row.end = end_of(aggregate.site, aggregate.end);
      into_.add_aggregate(row);
    }
  }

  void add_break(ThreadId thread, uint64_t time_ns, MetricId metric) {
    into_.profile().breaks.push_back(transfer_.moved(Break{.thread = thread, .time_ns = time_ns, .metric = metric}));
  }

  // At the end of the chosen time nothing is shown any more.
  void end_threads() {
    for (size_t i = 0; i < from_.threads.size(); ++i)
      if (keeps(ThreadId(i))) add_break(ThreadId(i), to_ns_, {});
  }

  void copy_waits() {
    Profile& to = into_.profile();
    for (const SwitchInterval& on : from_.on_cpu) {
      if (!keeps(on.thread) || !keeps_span(on.start_ns, on.end_ns)) continue;
      to.on_cpu.push_back(transfer_.moved(on));
      clip(to.on_cpu.back());
    }
    for (const OffCpuInterval& off : from_.off_cpu) {
      if (!keeps(off)) {
        const bool is_seen = keeps(off.thread) && off.site.valid() && keeps_moment(off.start_ns);
        if (is_seen) add_break(off.thread, off.start_ns, {});
        continue;
      }
      OffCpuInterval row = off;
      if (row.waker.valid() && !keeps(row.waker)) row.waker = {};
      row.end = end_of(off.site, off.end);
      OffCpuInterval& added = to.off_cpu.emplace_back(transfer_.moved(row));
      clip(added);
      if (added.woken_ns != 0) added.woken_ns = std::clamp(added.woken_ns, added.start_ns, added.end_ns);
    }
  }

  template <typename Row>
  void clip(Row& row) const {
    if (!filters_.time) return;
    row.start_ns = std::max(row.start_ns, from_ns_);
    row.end_ns = std::min(row.end_ns, to_ns_);
  }

  bool keeps_lane(ThreadId thread, TrackId track) const {
    if (thread.valid() || !track.valid()) return keeps(thread);
    const Track& row = from_.tracks[track.index()];
    if (row.thread.valid()) return keeps(row.thread);
    if (!row.process.valid()) return filters_.threads.empty() && filters_.processes.empty();
    if (!filters_.threads.empty()) return false;
    const Process& process = from_.processes[row.process.index()];
    return filters_.processes.empty() || is_called(from_.text(process.name), process.pid, filters_.processes);
  }

  static uint64_t end_of(const Slice& row) {
    uint64_t end = 0;
    return __builtin_add_overflow(row.start_ns, row.duration_ns, &end) ? UINT64_MAX : end;
  }
  bool keeps(const Slice& row) const {
    const uint64_t end = row.is_open ? UINT64_MAX : end_of(row);
    return keeps_lane(row.thread, row.track) && keeps_span(row.start_ns, end) && keeps(row.labels, process_of(row.thread, row.track));
  }
  bool keeps(const Mark& row) const {
    return keeps_lane(row.thread, row.track) && keeps_moment(row.time_ns) && keeps(row.labels, process_of(row.thread, row.track));
  }
  bool keeps(const CounterValue& row) const {
    return keeps({}, process_of({}, row.track)) && keeps_lane({}, row.track) && keeps_moment(row.time_ns);
  }

  // They have no stacks: expressions about frames leave them alone.
  void copy_lanes() {
    Profile& to = into_.profile();
    for (const Slice& slice : from_.slices) {
      if (!keeps(slice)) continue;
      Slice row = slice;
      if (filters_.time) {
        const uint64_t end = std::min(to_ns_, end_of(row));
        row.start_ns = std::max(row.start_ns, from_ns_);
        row.duration_ns = end > row.start_ns ? end - row.start_ns : 0;
      }
      to.slices.push_back(transfer_.moved(row));
    }
    for (const Mark& row : from_.marks)
      if (keeps(row)) to.marks.push_back(transfer_.moved(row));
    for (const CounterValue& row : from_.counters)
      if (keeps(row)) to.counters.push_back(transfer_.moved(row));
  }

  void note_what_went() {
    if (samples_gone_ + values_gone_ == 0) return;
    into_.profile().diagnostics.add("filtered_out", Severity::kInfo, "samples or values that filters left out",
                                    samples_gone_ + values_gone_);
  }

  const Profile& from_;
  const Filters& filters_;
  SiteFilter sites_;
  ProfileBuilder into_;
  SharedPlaces places_;
  Transfer transfer_{from_, into_, places_};
  std::vector<bool> keeps_thread_, used_sites_;
  std::vector<uint64_t> found_labels_, found_processes_;  // by label set, by process: bit by filter
  uint64_t group_filters_ = 0;  // those that processes have
  uint64_t from_ns_ = 0, to_ns_ = UINT64_MAX;
  uint64_t samples_gone_ = 0, values_gone_ = 0;
};

}  // namespace

bool Filters::empty() const {
  return !by_frame() && threads.empty() && processes.empty() && !time && labels.empty();
}

std::optional<PythonFrames> python_frames_from(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNames = {"mixed", "hide", "only"};
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<PythonFrames>(found - kNames.begin());
}

std::optional<uint64_t> parse_duration(std::string_view text) {
  for (const Suffix& suffix : kSuffixes) {
    if (!text.ends_with(suffix.text)) continue;
    const std::string_view digits = text.substr(0, text.size() - suffix.text.size());
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const double ns = value * suffix.ns;
    if (error != std::errc() || end != digits.data() + digits.size() || !(ns >= 0) || ns > 9e18) return std::nullopt;
    return static_cast<uint64_t>(std::llround(ns));
  }
  return std::nullopt;
}

Result<TimeRange> parse_time_range(std::string_view text) {
  const size_t dots = text.find("..");
  TimeRange range;
  bool is_good = dots != text.npos && text.size() > 2;
  if (is_good) {
    const std::string_view from = text.substr(0, dots), to = text.substr(dots + 2);
    const auto first = from.empty() ? uint64_t{0} : parse_duration(from);
    const auto last = to.empty() ? UINT64_MAX : parse_duration(to);
    is_good = first && last && *first < *last;
    if (is_good) range = {*first, *last};
  }
  if (!is_good) return fail(fmt::format("'{}' is not a time range; write 1.5..3, 200ms.. or ..2s", text));
  return range;
}

Result<LabelFilter> parse_label(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) return fail(fmt::format("'{}' is not key=value", text));
  return LabelFilter{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

Result<Profile> filtered(const Profile& profile, const Filters& filters) {
  if (filters.focus.size() > kMaxFocus) return fail(fmt::format("more than {} expressions to focus on", kMaxFocus));
  if (filters.labels.size() > kMaxLabels) return fail(fmt::format("more than {} labels to look for", kMaxLabels));
  return RowFilter(profile, filters).run();
}

}  // namespace cprof::analyze
