// Two passes over each thread's samples and waits: the first learns when each frame that opens will close, the second gives the
// slices out in the order in which they open, so that parents come before their children. Between the passes only one
// number per slice is kept; everything else is as large as the deepest stack.
#include "timeline/timeline.h"

#include <algorithm>

#include "timeline/open_frames.h"
#include "timeline/thread_samples.h"

namespace cprof::timeline {
namespace {

using profile::MetricId;
using profile::OffCpuInterval;
using profile::Profile;
using profile::Sample;
using profile::ThreadId;

constexpr uint64_t kGapIntervals = 3;  // a longer distance is a gap, not a slow sample

uint64_t saturating_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

MetricId default_metric(const Profile& profile) {
  for (size_t i = 0; i < profile.metrics.size(); ++i)
    if (profile.metrics[i].is_time) return MetricId(i);
  return profile.metrics.empty() ? MetricId() : MetricId(size_t{0});
}

// The lower one of two middles: with few samples a single gap must not become the measure.
uint64_t median(std::vector<uint64_t>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Samples that were filtered away count too: without them the others would seem to be rarer than they were taken.
uint64_t median_distance(const Profile& profile, MetricId metric) {
  std::vector<std::pair<ThreadId, uint64_t>> moments;
  for (const Sample& sample : profile.samples)
    if (sample.metric == metric) moments.emplace_back(sample.thread, sample.time_ns);
  for (const profile::Break& row : profile.breaks)
    if (row.metric == metric) moments.emplace_back(row.thread, row.time_ns);
  std::ranges::sort(moments);
  std::vector<uint64_t> distances;
  for (size_t i = 1; i < moments.size(); ++i)
    if (moments[i].first == moments[i - 1].first && moments[i].second > moments[i - 1].second)
      distances.push_back(moments[i].second - moments[i - 1].second);
  return median(distances);
}

// Samples of a time metric weigh the nanoseconds that each stands for.
uint64_t median_weight(const Profile& profile, MetricId metric) {
  std::vector<uint64_t> weights;
  for (const Sample& sample : profile.samples)
    if (sample.metric == metric && sample.weight > 0) weights.push_back(static_cast<uint64_t>(sample.weight));
  return median(weights);
}

uint64_t default_interval(const Profile& profile, MetricId metric) {
  if (!metric.valid()) return 1;
  const bool is_time = profile.metrics[metric.index()].is_time;
  const uint64_t period = profile.metrics[metric.index()].period;
  if (is_time && period != 0) return period;
  if (profile.run.sampling_interval_ns != 0) return profile.run.sampling_interval_ns;
  if (is_time)
    if (const uint64_t weight = median_weight(profile, metric); weight > 1) return weight;
  return std::max<uint64_t>(1, median_distance(profile, metric));
}

// A moment from which on a thread shows another stack.
struct Point {
  enum class Kind : uint8_t { kSample, kWait, kResume, kBreak };
  uint64_t time_ns = 0;
  profile::CallSiteId site;
  uint32_t row = 0;  // of profile.samples, or of profile.off_cpu; of a break: none
  Kind kind = Kind::kSample;
  uint64_t known_until_ns = 0;  // a wait is no gap, however long
};

struct ThreadTimeline {
  std::vector<Point> points;  // by time
  uint64_t end_ns = UINT64_MAX;
};

// How long each point's stack is shown: [its time, end_of(i)). The point after it may start later (a gap).
class Durations {
 public:
  Durations(const Options& options, const ThreadTimeline& thread) : options_(options), thread_(thread) {
    if (__builtin_mul_overflow(options.interval_ns, kGapIntervals, &longest_without_gap_))
      longest_without_gap_ = UINT64_MAX;
  }

  uint64_t start_of(size_t i) const { return thread_.points[i].time_ns; }

  uint64_t end_of(size_t i) const {
    const Point& point = thread_.points[i];
    if (point.kind == Point::Kind::kBreak) return point.time_ns;
    const uint64_t one_interval =
        std::max(saturating_add(point.time_ns, options_.interval_ns), point.known_until_ns);
    if (i + 1 == thread_.points.size()) {
      const uint64_t longest = point.kind == Point::Kind::kWait ? point.known_until_ns : one_interval;
      return std::max(point.time_ns, std::min(longest, thread_.end_ns));
    }
    const uint64_t next = start_of(i + 1);
    const uint64_t told_until = std::max(point.time_ns, point.known_until_ns);
    const bool is_gap = next > told_until && next - told_until > longest_without_gap_;
    return options_.gaps == Gaps::kCut && is_gap ? one_interval : next;
  }

 private:
  const Options& options_;
  const ThreadTimeline& thread_;
  uint64_t longest_without_gap_ = 0;
};

// Runs the diff over one thread: open(frame, depth) and close(frame, depth, end_ns).
template <typename Open, typename Close>
void diff_thread(const Profile& profile, const std::vector<Point>& points, const Durations& durations, Open&& open,
                 Close&& close) {
  OpenFrames frames(profile);
  uint64_t end = 0;
  auto close_at_end = [&](const OpenFrame& frame, uint32_t depth) { close(frame, depth, end); };
  for (size_t i = 0; i < points.size(); ++i) {
    const uint64_t start = durations.start_of(i);
    if (end < start) frames.close_all(close_at_end);
    end = start;
    if (points[i].kind == Point::Kind::kBreak) {
      frames.close_all(close_at_end);
      continue;
    }
    frames.move_to(points[i].site, start, close_at_end, open);
    end = durations.end_of(i);
  }
  frames.close_all(close_at_end);
}

void slice_thread(const Profile& profile, ThreadId thread, const std::vector<Point>& points, const Durations& durations,
                  const std::function<void(const FrameSlice&)>& on_slice) {
  std::vector<uint64_t> end_of_slice;
  diff_thread(
      profile, points, durations, [&](const OpenFrame&, uint32_t) { end_of_slice.push_back(0); },
      [&](const OpenFrame& frame, uint32_t, uint64_t end_ns) { end_of_slice[frame.ordinal] = end_ns; });
  diff_thread(
      profile, points, durations,
      [&](const OpenFrame& frame, uint32_t depth) {
        const uint64_t end = end_of_slice[frame.ordinal];
        if (end > frame.start_ns)
          on_slice({.thread = thread,
                    .start_ns = frame.start_ns,
                    .end_ns = end,
                    .depth = depth,
                    .location = frame.location,
                    .line = frame.line});
      },
      [](const OpenFrame&, uint32_t, uint64_t) {});
}

void add_waits(const Profile& profile, const ThreadRows<OffCpuInterval>::Part& waits, std::vector<Point>& points) {
  for (size_t i = 0; i < waits.rows.size(); ++i) {
    const OffCpuInterval& wait = waits.rows[i];
    if (!wait.site.valid()) continue;
    const auto row = static_cast<uint32_t>(waits.first + i);
    points.push_back({wait.start_ns, wait.site, row, Point::Kind::kWait, wait.end_ns});
    const profile::CallSiteId user = profile::user_part(profile, wait.site);
    if (!wait.is_open && user.valid()) points.push_back({wait.end_ns, user, row, Point::Kind::kResume, wait.end_ns});
  }
}

// A sample at the very moment of a break comes after it.
void add_breaks(const ThreadRows<profile::Break>::Part& breaks, MetricId metric, std::vector<Point>& points) {
  const auto before = static_cast<ptrdiff_t>(points.size());
  for (const profile::Break& row : breaks.rows)
    if (!row.metric.valid() || row.metric == metric)
      points.push_back({.time_ns = row.time_ns, .site = {}, .kind = Point::Kind::kBreak});
  std::vector<Point> joined(points.size());
  std::ranges::merge(points.begin() + before, points.end(), points.begin(), points.begin() + before, joined.begin(), {},
                     &Point::time_ns, &Point::time_ns);
  points.swap(joined);
}

// Calls per_thread(thread, points, durations) for every thread that has samples of the metric, or waits with stacks.
template <typename PerThread>
void for_each_thread(const Profile& profile, const Options& asked, PerThread&& per_thread) {
  const Options options = resolved(profile, asked);
  if (!options.metric.valid()) return;
  const ThreadSamples by_thread(profile, options.metric);
  ThreadRows<OffCpuInterval> waits(profile.off_cpu);
  ThreadRows<profile::Break> breaks(profile.breaks);
  for (size_t i = 0; i < profile.threads.size(); ++i) {
    ThreadTimeline timeline;
    for (uint32_t row : by_thread.of(i))
      timeline.points.push_back({profile.samples[row].time_ns, profile.samples[row].site, row});
    const size_t samples = timeline.points.size();
    add_waits(profile, waits.next(i), timeline.points);
    const auto gone = breaks.next(i);
    if (timeline.points.empty()) continue;
    std::ranges::inplace_merge(timeline.points, timeline.points.begin() + static_cast<ptrdiff_t>(samples), {},
                               &Point::time_ns);
    if (!gone.rows.empty()) add_breaks(gone, options.metric, timeline.points);
    if (profile.threads[i].end_ns != 0) timeline.end_ns = profile.threads[i].end_ns;
    per_thread(ThreadId(i), timeline.points, Durations(options, timeline));
  }
}

}  // namespace

Options default_options(const Profile& profile) {
  return resolved(profile, {.gaps = profile.run.has_switches ? Gaps::kExtend : Gaps::kCut});
}

Options resolved(const Profile& profile, Options options) {
  if (!options.metric.valid()) options.metric = default_metric(profile);
  if (options.interval_ns == 0) options.interval_ns = default_interval(profile, options.metric);
  return options;
}

void for_each_slice(const Profile& profile, const Options& options,
                    const std::function<void(const FrameSlice&)>& on_slice) {
  for_each_thread(profile, options,
                  [&](ThreadId thread, const std::vector<Point>& points, const Durations& durations) {
                    slice_thread(profile, thread, points, durations, on_slice);
                  });
}

WallWeights wall_weights(const Profile& profile, const Options& options) {
  WallWeights weights{.of_samples = std::vector<uint64_t>(profile.samples.size()),
                      .of_off_cpu = std::vector<uint64_t>(profile.off_cpu.size()),
                      .of_resumed = std::vector<uint64_t>(profile.off_cpu.size())};
  std::vector<uint64_t>* const of_kind[] = {&weights.of_samples, &weights.of_off_cpu, &weights.of_resumed};
  for_each_thread(profile, options, [&](ThreadId, const std::vector<Point>& points, const Durations& durations) {
    for (size_t i = 0; i < points.size(); ++i) {
      if (points[i].kind == Point::Kind::kBreak) continue;
      std::vector<uint64_t>& values = *of_kind[static_cast<size_t>(points[i].kind)];
      values[points[i].row] = durations.end_of(i) - durations.start_of(i);
    }
  });
  return weights;
}

}  // namespace cprof::timeline
