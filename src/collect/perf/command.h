// The command target: a child that waits, before its exec, until sampling is set up. Its standard files, limits and
// signals are those cprof itself was started with. Not thread-safe: fork() is called before any thread is made.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace cprof::collect {

class Command {
 public:
  static constexpr int kNotFound = 127, kNotExecutable = 126;

  static Result<Command> fork(const std::vector<std::string>& argv);
  Command(Command&& other) noexcept;
  Command& operator=(Command&&) = delete;
  ~Command();  // a child that was never released exits without running anything

  pid_t pid() const { return pid_; }
  // Lets the child exec. When that fails, status() is 127 or 126 and the error says why.
  Result<void> release();
  // Reaps the child if it has ended. Never blocks.
  bool has_ended();
  // As a shell gives it: the exit code, or 128 + the signal; -1 while it runs.
  int status() const { return status_; }

 private:
  Command(std::string name, pid_t pid, Fd go, Fd error)
      : name_(std::move(name)), pid_(pid), go_(std::move(go)), error_(std::move(error)) {}
  void note_status(int wait_status);

  std::string name_;
  pid_t pid_ = -1;
  Fd go_;     // one byte: exec now
  Fd error_;  // the errno of a failed exec; closed by a good one
  int status_ = -1;
};

}  // namespace cprof::collect
