// Begins and ends of slices, in any order of the file, paired into slices. Used by the readers of Chrome and Perfetto
// traces; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/builder.h"

namespace cprof::format {

struct Edge {
  enum class Kind : uint8_t { kBegin, kEnd, kMark };
  int64_t time_ns = 0;
  uint32_t lane = 0;  // a thread, or an asynchronous id
  StringId name = profile::kNoText, category = profile::kNoText;
  profile::LabelSetId labels{};
  Kind kind = Kind::kBegin;
};

struct PairCounts {
  uint64_t open = 0;            // begins that no end closed
  uint64_t unmatched_ends = 0;  // ends that closed nothing
  uint64_t not_nested = 0;      // ends that closed another slice than the newest, or that may have
};

// Pairs the edges of one lane, given in the order of time. An end with a name closes the newest slice of that name, one
// without the newest slice.
class LanePairs {
 public:
  LanePairs(profile::ProfileBuilder& builder, int64_t end_of_trace, PairCounts& counts)
      : builder_(builder), end_of_trace_(end_of_trace), counts_(counts) {}

  // The slice begun, or closed: its row; owner fields are the caller's to set at a begin.
  uint32_t begin(const Edge& edge);
  void end(const Edge& edge);
  void close_all();
  bool empty() const { return open_.empty(); }

 private:
  struct Open {
    uint32_t row;
    StringId name;
  };
  void add_labels(profile::Slice& slice, profile::LabelSetId more);

  profile::ProfileBuilder& builder_;
  int64_t end_of_trace_;
  PairCounts& counts_;
  std::vector<Open> open_;
  int64_t early_ns_ = 0;  // the newest end that closed nothing
  StringId early_name_ = profile::kNoText;
};

// The rows of edges, lane by lane, in each by time, equal times in the order of the file.
std::vector<uint32_t> in_lanes(const std::vector<Edge>& edges, size_t lanes);

}  // namespace cprof::format
