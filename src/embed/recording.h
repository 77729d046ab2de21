// What a session has taken out of the threads' rings: samples with their stacks as places in files, and scopes, marks and counter
// values as they were written. Bounded in memory; what did not fit is counted, so that written and lost make emitted.
// The collector thread only.
#pragma once

#include <cprof/cprof.h>

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "collect/inproc/sample_ring.h"
#include "embed/module_tracker.h"
#include "embed/options.h"
#include "embed/scopes.h"
#include "embed/spike_watch.h"
#include "embed/thread_registry.h"

namespace cprof::embed {

struct StoredFrame {
  static constexpr uint32_t kNoFile = UINT32_MAX;
  uint64_t address = 0;      // in the file; in memory when there is none
  uint32_t file = kNoFile;
  bool is_exact = false;
  bool operator==(const StoredFrame&) const = default;
};

struct StoredStack {
  uint32_t first = 0, count = 0;   // in frames(), leaf first
};

struct StoredSample {
  uint64_t ticks = 0;
  int64_t weight_ns = 0;
  uint32_t thread = 0, stack = 0, track = 0;
  uint32_t span_ns = 0;      // what it stands for by its timer
  uint32_t times = 1;        // periods of the session's rate in that: more than one where a timer ticked late
  inproc::WalkEnd end = inproc::WalkEnd::kRoot;
};

struct StoredThread {
  int32_t tid = 0;
  std::string name;
  uint64_t start_ticks = 0, end_ticks = 0;
  uint64_t cpu_ns = 0, samples = 0;
  uint64_t kept_samples = 0, last_look = 0;
  std::deque<cprof_record> records;
  std::vector<cprof_record> open;  // scopes that had not ended when the last look was taken: end is 0
};

// When a record was written: a scope's end.
inline uint64_t time_of(const cprof_record& record) {
  return kind_of(record.word) == CPROF_KIND_SCOPE_ ? record.end : record.start;
}

struct RecordingCounts {
  uint64_t samples = 0, samples_lost = 0, periods = 0;
  uint64_t written = 0, lost = 0;           // scopes, marks, counter values
  uint64_t ends[8] = {};                    // samples by WalkEnd
  uint64_t unweighed_ns = 0;                // CPU time of threads that ended before a sample could carry it
};

class Recording {
 public:
  explicit Recording(const Options& options) : options_(options) {}
  // Sees every scope that is taken, kept or not.
  void watch(SpikeWatch& spikes) { spikes_ = &spikes; }

  // Takes what the thread has written. True: there was so much that the rings should be looked at again soon.
  bool drain(LiveThread& thread, const ModuleTracker& modules);
  // A look at the scopes that are open now; replaces the last one.
  void note_open_scopes(const LiveThread& thread);
  // Drops what is older, and in time the threads and stacks that nothing refers to any more.
  void forget_before(uint64_t ticks);
  // Since the last time that this was asked: samples of code in no known module.
  bool take_unknown_code() { return std::exchange(unknown_code_, false); }

  // A row without a tid is of a thread that was forgotten.
  const std::vector<StoredThread>& threads() const { return threads_; }
  uint64_t threads_seen() const { return threads_seen_; }
  uint64_t cpu_ns() const;   // of all threads that were seen
  const std::deque<StoredSample>& samples() const { return samples_; }
  const std::vector<StoredStack>& stacks() const { return stacks_; }
  std::span<const StoredFrame> frames_of(uint32_t stack) const {
    return {frames_.data() + stacks_[stack].first, stacks_[stack].count};
  }
  const RecordingCounts& counts() const { return counts_; }
  uint64_t bytes() const { return bytes_; }

 private:
  StoredThread& row_of(LiveThread& thread);
  bool drain_samples(LiveThread& thread, const ModuleTracker& modules);
  bool drain_scopes(LiveThread& thread);
  void weigh(LiveThread& thread, size_t first_sample);
  uint32_t intern_stack(std::span<const StoredFrame> frames);
  void drop_oldest_sample();
  void forget_threads();
  void drop_unused_stacks();
  bool make_room(uint64_t bytes);
  void store(StoredThread& row, const cprof_record& record);

  const Options& options_;
  std::vector<StoredThread> threads_;
  std::deque<StoredSample> samples_;
  std::vector<StoredStack> stacks_;
  std::vector<StoredFrame> frames_, scratch_;
  std::unordered_multimap<uint64_t, uint32_t> stack_ids_;
  std::vector<cprof_record> batch_;
  std::vector<uint32_t> free_rows_;
  SpikeWatch* spikes_ = nullptr;
  RecordingCounts counts_;
  uint64_t bytes_ = 0, stack_bytes_ = 0, kept_stack_bytes_ = 0;
  uint64_t look_ = 0, threads_seen_ = 0, forgotten_cpu_ns_ = 0;
  bool unknown_code_ = false;
};

}  // namespace cprof::embed
