#include "session/limits.h"

#include <algorithm>

namespace cprof::session {

bool Limits::is_full(uint64_t times) const {
  if (options_.max_bytes == 0) return false;
  uint64_t bytes = std::max<uint64_t>(pipeline_.bytes_held(), raw_ ? raw_->bytes_written() : 0);
  return bytes / times >= options_.max_bytes;
}

// In the copy the recording ends here; this one goes on.
Result<void> Limits::start_part() {
  return parts_.start([this]() -> Result<profile::Profile> {
    TRY(pipeline_.finish(pipeline_.delivered_until()));
    profile::Profile profile = pipeline_.take();
    complete_(profile);
    return profile;
  });
}

// A part that could not be written does not end the recording.
void Limits::note(Result<void> looked) {
  if (!looked && !error_) error_ = looked.error();
  size_t count = parts_.count_written();
  if (count == told_) return;
  told_ = count;
  if (on_part_) on_part_(parts_.written().back());
}

Result<bool> Limits::look(bool is_dump_wanted) {
  note(parts_.look());
  is_dump_due_ |= is_dump_wanted;
  if (is_dump_due_ && !parts_.is_busy()) {
    is_dump_due_ = false;
    TRY(start_part());
  }
  if (!is_full(1)) return true;
  if (options_.rotate == 0) return false;
  // The part before is still being written: this one may grow to twice its size, then it must wait.
  if (parts_.is_busy() && !is_full(2)) return true;
  note(parts_.wait());
  TRY(start_part());
  pipeline_.forget_before(pipeline_.delivered_until() + 1);
  return true;
}

void Limits::finish(Recorded& recorded) {
  note(parts_.wait());
  if (error_ && !recorded.collection_error) recorded.collection_error = error_;
  recorded.parts = parts_.written();
  recorded.outputs = options_.outputs;
  bool is_in_parts = options_.max_bytes != 0 && options_.rotate != 0;
  if (is_in_parts) parts_.name_last(recorded.outputs, recorded.outdated);
}

}  // namespace cprof::session
