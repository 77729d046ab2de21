// The CPU profiles of V8 that DevTools puts into a Chrome trace: a "Profile" event that begins one and "ProfileChunk"
// events with parts of it, or one "CpuProfile" event with all of it. Used by the Chrome trace reader; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "format/cpuprofile/v8_tree.h"
#include "format/json/tokenizer.h"
#include "profile/builder.h"

namespace cprof::format::chrome {

class TextCache;

// What one event holds of a profile.
struct V8Part {
  std::vector<V8Node> nodes;
  std::vector<std::pair<int64_t, int64_t>> edges;  // parent, child: ids
  std::vector<int64_t> samples;                    // ids of nodes
  std::vector<int64_t> deltas;                     // microseconds from the sample before
  std::optional<int64_t> start_us, end_us;
  bool is_present = false;

  void clear();
};

// The object "cpuProfile", or the array "timeDeltas" beside it, whose opening bracket was the newest token. Gives the last
// token, kEnd or kBad.
JsonTokenizer::Token parse_v8_profile(JsonTokenizer& json, TextCache& texts, V8Part& part);
JsonTokenizer::Token parse_v8_deltas(JsonTokenizer& json, V8Part& part);

class V8Profiles {
 public:
  explicit V8Profiles(profile::ProfileBuilder& builder) : builder_(builder) {}

  struct Key {
    profile::ProcessId process{};
    StringId id = profile::kNoText;
    auto operator<=>(const Key&) const = default;
  };
  void begin(const Key& key, profile::ThreadId thread, int64_t start_ns);
  void add_chunk(const Key& key, profile::ThreadId thread, int64_t event_ns, const V8Part& part);
  void add_whole(profile::ThreadId thread, int64_t event_ns, const V8Part& part);
  bool empty() const { return profiles_.empty(); }

  struct Outcome {
    uint64_t samples = 0;
    uint64_t broken_stacks = 0;  // samples whose node, or one of its parents, is not there
    uint64_t malformed = 0;      // nodes that are doubled or missing, samples without a time, times beyond 64 bits
    int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
  };
  // Makes them samples of the profile, metric "duration": the time until the thread's next one.
  Outcome finish();

 private:
  struct Chunk {
    int64_t event_ns = 0;
    size_t first = 0, count = 0;  // of samples
  };
  struct Sample {
    int64_t node = 0, delta_us = 0;
  };
  struct Moment {
    int64_t time_ns = 0, node = 0;
  };
  struct V8Profile {
    explicit V8Profile(profile::ProfileBuilder& builder) : tree(builder) {}
    profile::ThreadId thread{};
    std::optional<int64_t> start_ns, end_ns;
    V8Tree tree;
    std::vector<Chunk> chunks;
    std::vector<Sample> samples;
  };

  V8Profile& profile_of(const Key& key);
  void add(V8Profile& profile, profile::ThreadId thread, int64_t event_ns, const V8Part& part);
  std::vector<Moment> moments_of(V8Profile& profile, Outcome& outcome) const;
  void add_samples(V8Profile& profile, Outcome& outcome);

  profile::ProfileBuilder& builder_;
  std::deque<V8Profile> profiles_;
  std::map<Key, V8Profile*> by_key_;
  uint64_t without_time_ = 0;
  profile::MetricId metric_{};
};

}  // namespace cprof::format::chrome
