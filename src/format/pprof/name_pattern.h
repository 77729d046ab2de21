// Full-match patterns over function names in RE2's everyday syntax, in time linear in the name whatever the pattern:
// the patterns come out of files (pprof's drop_frames and keep_frames) that nobody vouches for. Used by the pprof reader.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cprof::format {

class NamePattern {
 public:
  // Knows literals, ., [classes], escapes, groups, |, *, +, ?, {n,m}, ^, $, (?i), (?s). What it does not know, and
  // patterns that grow beyond 20,000 steps, are an error that says so.
  static Result<NamePattern> compile(std::string_view pattern);

  // The whole text matches. Keeps scratch space between calls: one thread.
  bool matches(std::string_view text);

 private:
  friend class PatternCompiler;

  enum class Op : uint8_t { kSet, kSplit, kJump, kBegin, kEnd, kMatch };
  struct Step {
    Op op = Op::kMatch;
    uint32_t set = 0;           // index into sets_
    uint32_t next = 0, other = 0;
  };

  void follow(uint32_t step, size_t at, size_t size, std::vector<uint32_t>& list);

  std::vector<Step> steps_;
  std::vector<std::bitset<256>> sets_;
  std::vector<uint32_t> now_, then_, pending_;
  std::vector<uint64_t> seen_;  // by step: the round that listed it
  uint64_t round_ = 0;
};

}  // namespace cprof::format
