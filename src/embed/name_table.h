// The names of scopes, counters, marks and fibers: each distinct text once, copied, so that a library that is unloaded leaves its
// names here. Any thread; a lock is taken only when a place in the code, or a text, is met for the first time.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace cprof::embed {

class NameTable {
 public:
  static constexpr uint32_t kMaxDynamic = 65'536;
  static constexpr uint32_t kTooMany = 1;   // the id of what comes after kMaxDynamic texts

  NameTable();
  uint32_t of_site(std::string_view text);     // never 0; below 2^24
  uint32_t of_text(std::string_view text);     // bounded: kTooMany when there are too many
  std::string name(uint32_t id) const;
  uint64_t refused() const;

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  uint32_t add(std::string_view text, uint32_t limit);

  mutable std::mutex mutex_;
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, uint32_t> ids_;
  uint64_t refused_ = 0;
};

}  // namespace cprof::embed
