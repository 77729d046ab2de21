// How samples are kept: some hundreds in a row of cprof_sample_chunk, each column either one value for all of them or a
// JSON array, which any SQLite client unpacks (view perf_sample). Used by the writer and the reader. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"

namespace cprof::store {

inline constexpr size_t kChunkSamples = 256;

// A column of a chunk: one value, none, or the text of an array.
struct PackedColumn {
  bool is_array = false;
  std::optional<int64_t> value;
  std::string array;
};
PackedColumn pack(std::span<const std::optional<int64_t>> values);
std::string pack_array(std::span<const int64_t> values);
// An array of `count` whole numbers or nulls; an error says what else it is.
Result<std::vector<std::optional<int64_t>>> unpack(std::string_view array, size_t most);

// Numbers what samples have in common.
class SampleContexts {
 public:
  // The context of a sample; it is new when its number is what size() was.
  uint32_t find_or_add(const profile::Sample& sample);
  const std::vector<profile::Sample>& rows() const { return rows_; }  // time, weight and stack mean nothing

 private:
  struct Hash {
    size_t operator()(const profile::Sample& sample) const;
  };
  struct Equal {
    bool operator()(const profile::Sample& a, const profile::Sample& b) const;
  };
  std::unordered_map<profile::Sample, uint32_t, Hash, Equal> index_;
  std::vector<profile::Sample> rows_;
};

struct SampleChunk {
  int64_t ts = 0, step = 0;
  std::string jitter;
  PackedColumn context, callsite, weight;
};
SampleChunk pack_samples(std::span<const profile::Sample> samples, SampleContexts& contexts);

}  // namespace cprof::store
