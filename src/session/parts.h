// A recording that is written in several files while it goes on: NAME.0.ext, NAME.1.ext, ... Each part is named and
// written by a forked copy of this process, so that sampling does not wait for symbols or for the disk; one at a time.
// Used by session::record(), on its thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "session/record.h"

namespace cprof::session {

// "run.pb.gz" of the pprof format, 3 -> "run.3.pb.gz". A name without an extension of its format: "run.3".
std::string part_path(const Output& output, size_t number);

class PartWriter {
 public:
  // keep: only the newest so many parts stay; 0: all. on_losses is called in the copy.
  PartWriter(const std::vector<Output>& outputs, const format::WriteOptions& options, size_t keep, LossListener on_losses = {})
      : outputs_(outputs), options_(options), on_losses_(std::move(on_losses)), keep_(keep) {}
  ~PartWriter();
  PartWriter(const PartWriter&) = delete;

  // make: gives the part's profile. Called in the copy; nothing it does is seen here.
  Result<void> start(const std::function<Result<profile::Profile>()>& make);
  bool is_busy() const { return child_ > 0; }
  // Looks whether the part that is being written is done, or waits for it; its error, if it failed.
  Result<void> look() { return finish(false); }
  Result<void> wait() { return finish(true); }

  // The names of the last part, which the caller writes, and of the files that are then too many.
  void name_last(std::vector<Output>& outputs, std::vector<std::string>& outdated) const;

  size_t count_written() const { return count_written_; }
  const std::vector<std::string>& written() const { return written_; }  // those that are still there

 private:
  std::vector<Output> outputs_of(size_t number) const;
  Result<void> finish(bool wait);
  void note_written(size_t number);

  const std::vector<Output>& outputs_;
  const format::WriteOptions& options_;
  LossListener on_losses_;
  size_t keep_, next_ = 0, count_written_ = 0;
  pid_t child_ = -1;
  Fd error_;  // what the copy has to say
  std::vector<std::string> written_;
};

}  // namespace cprof::session
