// Two passes over each thread's samples: the first learns when each frame that opens will close, the second gives the
// slices out in the order in which they open, so that parents come before their children. Between the passes only one
// number per slice is kept; everything else is as large as the deepest stack.
#include "timeline/timeline.h"

#include <algorithm>

#include "timeline/open_frames.h"
#include "timeline/thread_samples.h"

namespace cprof::timeline {
namespace {

using profile::MetricId;
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

uint64_t median_distance(const Profile& profile, MetricId metric) {
  std::vector<uint64_t> last(profile.threads.size(), UINT64_MAX);
  std::vector<uint64_t> distances;
  for (const Sample& sample : profile.samples) {
    if (sample.metric != metric) continue;
    uint64_t& before = last[sample.thread.index()];
    if (before < sample.time_ns) distances.push_back(sample.time_ns - before);
    before = sample.time_ns;
  }
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

// How long each sample's stack is shown: [its time, end_of(i)). The sample after it may start later (a gap).
class Durations {
 public:
  Durations(const Profile& profile, const Options& options, std::span<const uint32_t> rows)
      : samples_(profile.samples), options_(options), rows_(rows) {
    if (__builtin_mul_overflow(options.interval_ns, kGapIntervals, &longest_without_gap_))
      longest_without_gap_ = UINT64_MAX;
  }

  uint64_t start_of(size_t i) const { return samples_[rows_[i]].time_ns; }

  uint64_t end_of(size_t i) const {
    const Sample& sample = samples_[rows_[i]];
    const uint64_t one_interval = saturating_add(sample.time_ns, options_.interval_ns);
    if (i + 1 == rows_.size()) return std::max(sample.time_ns, std::min(one_interval, thread_end_));
    const uint64_t next = start_of(i + 1);
    const bool is_gap = next - sample.time_ns > longest_without_gap_;
    return options_.gaps == Gaps::kCut && is_gap ? one_interval : next;
  }

  void set_thread_end(uint64_t end_ns) {
    if (end_ns != 0) thread_end_ = end_ns;
  }

 private:
  const std::vector<Sample>& samples_;
  const Options& options_;
  std::span<const uint32_t> rows_;
  uint64_t longest_without_gap_ = 0;
  uint64_t thread_end_ = UINT64_MAX;
};

// Runs the diff over one thread: open(frame, depth) and close(frame, depth, end_ns).
template <typename Open, typename Close>
void diff_thread(const Profile& profile, std::span<const uint32_t> rows, const Durations& durations, Open&& open,
                 Close&& close) {
  OpenFrames frames(profile);
  uint64_t end = 0;
  auto close_at_end = [&](const OpenFrame& frame, uint32_t depth) { close(frame, depth, end); };
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint64_t start = durations.start_of(i);
    if (end < start) frames.close_all(close_at_end);
    end = start;
    frames.move_to(profile.samples[rows[i]].site, start, close_at_end, open);
    end = durations.end_of(i);
  }
  frames.close_all(close_at_end);
}

void slice_thread(const Profile& profile, ThreadId thread, std::span<const uint32_t> rows, const Durations& durations,
                  const std::function<void(const FrameSlice&)>& on_slice) {
  std::vector<uint64_t> end_of_slice;
  diff_thread(
      profile, rows, durations, [&](const OpenFrame&, uint32_t) { end_of_slice.push_back(0); },
      [&](const OpenFrame& frame, uint32_t, uint64_t end_ns) { end_of_slice[frame.ordinal] = end_ns; });
  diff_thread(
      profile, rows, durations,
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

// Calls per_thread(thread, rows, durations) for every thread that has samples of the metric.
template <typename PerThread>
void for_each_thread(const Profile& profile, const Options& asked, PerThread&& per_thread) {
  const Options options = resolved(profile, asked);
  if (!options.metric.valid()) return;
  const ThreadSamples by_thread(profile, options.metric);
  for (size_t i = 0; i < profile.threads.size(); ++i) {
    const auto rows = by_thread.of(i);
    if (rows.empty()) continue;
    Durations durations(profile, options, rows);
    durations.set_thread_end(profile.threads[i].end_ns);
    per_thread(ThreadId(i), rows, durations);
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
  for_each_thread(profile, options, [&](ThreadId thread, std::span<const uint32_t> rows, const Durations& durations) {
    slice_thread(profile, thread, rows, durations, on_slice);
  });
}

std::vector<uint64_t> wall_weights(const Profile& profile, const Options& options) {
  std::vector<uint64_t> weights(profile.samples.size());
  for_each_thread(profile, options, [&](ThreadId, std::span<const uint32_t> rows, const Durations& durations) {
    for (size_t i = 0; i < rows.size(); ++i) weights[rows[i]] = durations.end_of(i) - durations.start_of(i);
  });
  return weights;
}

}  // namespace cprof::timeline
