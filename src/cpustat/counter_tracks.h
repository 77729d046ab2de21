// The intervals of a run as a profile: for each thread a counter track for each thing it did, so that every format and
// the page's timeline show them beside a recording's samples. Used by the verb.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "cpustat/intervals.h"
#include "profile/builder.h"

namespace cprof::cpustat {

class CounterTracks {
 public:
  // command: what was asked for, as a person would say it.
  explicit CounterTracks(std::string command);

  void add(const Interval& interval);
  profile::Profile take(Diagnostics losses);

 private:
  struct Lane {
    profile::TrackId track{};
    double value = 0;  // the last one told
  };
  struct ThreadLanes {
    profile::ThreadId thread{};
    std::vector<Lane> lanes;  // one each of what is counted; a track is made when it is not 0 for the first time
    uint64_t end_ns = 0;      // of the interval that had it last
  };

  ThreadLanes& lanes_of(const Row& row, uint64_t time_ns);
  void set(ThreadLanes& thread, size_t which, double value, uint64_t time_ns);
  void end_threads(uint64_t time_ns);

  profile::ProfileBuilder builder_;
  std::map<int32_t, profile::ProcessId> processes_;
  std::unordered_map<int64_t, ThreadLanes> threads_;
  uint64_t last_ns_ = 0;
};

}  // namespace cprof::cpustat
