// The one instance behind the C functions: sessions one after another, thread starts and ends, fork. Made at first use and never
// destroyed: threads may still run when a program's destructors do.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "embed/session.h"

namespace cprof::embed {

// One line to people, on stderr.
void say(const std::string& line);

class Library {
 public:
  static Library& get();
  // False: nothing was ever asked of the library, so there is nothing to do at exit or fork.
  static bool exists();

  Result<void> start(std::string_view options);
  Result<void> stop();
  Result<void> dump(const std::string& path);
  Result<void> dump_onto(int fd, const std::string& name);
  void fill(cprof_status& status);

  // Of the calling thread; null when it cannot have one.
  inproc::ThreadState* attach(bool with_ring);
  NameTable& names() { return names_; }
  Result<void> limit_scope(std::string_view name, uint64_t longest_ns);
  ThreadRegistry& threads() { return threads_; }
  bool samples_threads() const { return has_session_; }

  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();
  void at_exit();
  // From now on sessions say what they did, and names of files are relative to the present working directory.
  void set_by_environment();

 private:
  Library();
  Result<void> start_locked(const Options& options);
  Result<void> stop_locked();
  void tell(const std::string& line) const;

  std::mutex control_;
  NameTable names_;
  ThreadRegistry threads_;
  ModuleTracker modules_;
  ScopeLimits limits_;
  std::unique_ptr<Session> session_;
  std::atomic<bool> has_session_{false};
  std::atomic<uint64_t> ring_records_{Options{}.ring_records};
  uint64_t sessions_ = 0;
  int32_t pid_ = 0;
  std::string folder_;     // empty: where the program is when a session starts
  bool is_told_ = false;   // sessions of the environment say on stderr what they did
  sigset_t mask_before_fork_{};
};

}  // namespace cprof::embed
