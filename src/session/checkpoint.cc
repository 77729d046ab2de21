#include "session/checkpoint.h"

#include <sys/stat.h>

#include <algorithm>

namespace cprof::session {
namespace {

// The promise is 5 s; a round of the recording takes up to 0.1 s, and a commit may have to wait for a reader once.
constexpr uint64_t kFirstNs = 1'000'000'000, kIntervalNs = 4'000'000'000;

bool can_have_part(const Output& output) {
  struct stat st;
  return output.format->grow && output.path != "-" && (stat(output.path.c_str(), &st) != 0 || S_ISREG(st.st_mode));
}

}  // namespace

Checkpoint::Checkpoint(const std::vector<Output>& outputs, pipeline::Pipeline& pipeline, event::Collector& collector)
    : pipeline_(pipeline), collector_(collector) {
  const auto output = std::ranges::find_if(outputs, can_have_part);
  if (output == outputs.end()) return;
  path_ = output->path + ".part";
  file_ = output->format->grow(path_);
}

void Checkpoint::look(uint64_t now_ns) {
  if (!file_) return;
  if (next_ns_ == 0) next_ns_ = now_ns + kFirstNs;
  if (now_ns < next_ns_ || pipeline_.delivered_until() == 0) return;
  next_ns_ = now_ns + kIntervalNs;
  if (auto done = commit(); !done) {
    error_ = done.error().message;
    file_.reset();
  }
}

Result<void> Checkpoint::commit() {
  const profile::Profile& so_far = pipeline_.so_far();
  Diagnostics losses = so_far.diagnostics;
  losses.merge(collector_.diagnostics());
  const bool is_renumbered = renumberings_ != pipeline_.renumberings();
  renumberings_ = pipeline_.renumberings();
  is_made_ = true;
  return file_->commit(so_far, losses, is_renumbered);
}

void Checkpoint::finish(Recorded& recorded) {
  file_.reset();
  if (is_made_) recorded.outdated.push_back(path_);
}

void Checkpoint::tell(Diagnostics& losses) const {
  if (error_.empty()) return;
  losses.add("part_not_written", Severity::kNotice,
             "the .part file, for the case that the recording is killed, could not be kept", 1, error_);
}

}  // namespace cprof::session
