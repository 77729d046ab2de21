#include "cpustat/counter_tracks.h"

#include <algorithm>
#include <cmath>

#include "profile/this_machine.h"

namespace cprof::cpustat {
namespace {

using profile::WaitClass;

struct Counter {
  const char* name;
  const char* unit;
  double (*value)(const Row&, uint64_t interval_ns);
};

double share(uint64_t ns, uint64_t interval_ns) {
  if (interval_ns == 0) return 0;
  return std::round(1000.0 * static_cast<double>(ns) / static_cast<double>(interval_ns)) / 10;  // percent, one decimal
}

double rate(uint64_t count, uint64_t interval_ns) {
  return interval_ns == 0 ? 0 : std::round(1e10 * static_cast<double>(count) / static_cast<double>(interval_ns)) / 10;
}

template <WaitClass kClass>
double wait_share(const Row& row, uint64_t interval_ns) {
  return share(row.wait_ns(kClass), interval_ns);
}

constexpr const char *kShare = "%", *kRate = "1/s";
constexpr Counter kCounters[] = {
    {"user", kShare, [](const Row& r, uint64_t ns) { return share(r.user_ns, ns); }},
    {"kernel", kShare, [](const Row& r, uint64_t ns) { return share(r.kernel_ns, ns); }},
    {"runnable", kShare, [](const Row& r, uint64_t ns) { return share(r.runnable_ns, ns); }},
    {"futex", kShare, wait_share<WaitClass::kFutex>},
    {"lock", kShare, wait_share<WaitClass::kLock>},
    {"poll", kShare, wait_share<WaitClass::kPoll>},
    {"sleep", kShare, wait_share<WaitClass::kSleep>},
    {"io", kShare, wait_share<WaitClass::kIo>},
    {"network", kShare, wait_share<WaitClass::kNetwork>},
    {"memory", kShare, wait_share<WaitClass::kMemory>},
    {"other", kShare, wait_share<WaitClass::kOther>},
    {"switches voluntary", kRate, [](const Row& r, uint64_t ns) { return rate(r.voluntary, ns); }},
    {"switches involuntary", kRate, [](const Row& r, uint64_t ns) { return rate(r.involuntary, ns); }},
    {"migrations", kRate, [](const Row& r, uint64_t ns) { return rate(r.migrations, ns); }},
    {"wakeups", kRate, [](const Row& r, uint64_t ns) { return rate(r.wakeups, ns); }},
};

}  // namespace

CounterTracks::CounterTracks(std::string command) {
  profile::RunInfo& run = builder_.profile().run;
  profile::describe_this_machine(run);
  run.command = std::move(command);
}

CounterTracks::ThreadLanes& CounterTracks::lanes_of(const Row& row, uint64_t time_ns) {
  const int64_t key = int64_t{row.pid} << 32 | static_cast<uint32_t>(row.tid);
  auto [it, is_new] = threads_.try_emplace(key);
  ThreadLanes& lanes = it->second;
  auto [process, is_new_process] = processes_.try_emplace(row.pid);
  if (is_new_process) process->second = builder_.add_process(row.pid, row.comm, time_ns);
  if (is_new) {
    lanes.thread = builder_.add_thread(process->second, row.tid, row.comm, time_ns);
    lanes.lanes.resize(std::size(kCounters));
  }
  profile::Profile& profile = builder_.profile();
  const StringId name = builder_.intern(row.comm);
  profile.threads[lanes.thread.index()].name = name;
  if (row.tid == row.pid) profile.processes[process->second.index()].name = name;
  return lanes;
}

// A counter's value holds until the next: only changes are kept.
void CounterTracks::set(ThreadLanes& thread, size_t which, double value, uint64_t time_ns) {
  Lane& lane = thread.lanes[which];
  if (value == lane.value) return;
  profile::Profile& profile = builder_.profile();
  if (!lane.track.valid()) {
    lane.track = profile::TrackId(profile.tracks.size());
    profile.tracks.push_back({.name = builder_.intern(kCounters[which].name), .unit = builder_.intern(kCounters[which].unit),
                              .process = profile.threads[thread.thread.index()].process, .thread = thread.thread});
  }
  lane.value = value;
  profile.counters.push_back({.track = lane.track, .time_ns = time_ns, .value = value});
}

void CounterTracks::add(const Interval& interval) {
  profile::RunInfo& run = builder_.profile().run;
  if (run.start_ns == 0) run.start_ns = interval.start_ns;
  run.end_ns = last_ns_ = interval.end_ns;
  for (const Row& row : interval.rows) {
    ThreadLanes& lanes = lanes_of(row, interval.start_ns);
    lanes.end_ns = interval.end_ns;
    for (size_t i = 0; i < std::size(kCounters); i++)
      set(lanes, i, kCounters[i].value(row, interval.length_ns()), interval.start_ns);
    if (row.has_ended) builder_.profile().threads[lanes.thread.index()].end_ns = interval.end_ns;
  }
  end_threads(interval.end_ns);
}

void CounterTracks::end_threads(uint64_t time_ns) {
  for (auto it = threads_.begin(); it != threads_.end();) {
    ThreadLanes& thread = it->second;
    const bool has_ended = builder_.profile().threads[thread.thread.index()].end_ns != 0;
    if (!has_ended && thread.end_ns == time_ns) {
      ++it;
      continue;
    }
    for (size_t i = 0; i < std::size(kCounters); i++) set(thread, i, 0, thread.end_ns);
    it = threads_.erase(it);
  }
}

profile::Profile CounterTracks::take(Diagnostics losses) {
  end_threads(last_ns_ + 1);
  std::ranges::stable_sort(builder_.profile().counters, {}, &profile::CounterValue::time_ns);
  builder_.profile().diagnostics.merge(losses);
  return builder_.take();
}

}  // namespace cprof::cpustat
