// What bounds a long recording: a size at which it stops or goes on in the next file, and the dumps of a recording that
// keeps only its last seconds. Asked by session::record() after each round.
#pragma once

#include <functional>
#include <optional>

#include "format/perfdata/raw_writer.h"
#include "pipeline/pipeline.h"
#include "session/parts.h"
#include "session/record.h"

namespace cprof::session {

class Limits {
 public:
  // raw: may be null. complete: what a part's profile gets besides what the pipeline knows.
  Limits(const RecordOptions& options, pipeline::Pipeline& pipeline, const format::RawWriter* raw,
         std::function<void(profile::Profile&)> complete, const Listener& listener)
      : options_(options), pipeline_(pipeline), raw_(raw), complete_(std::move(complete)), on_part_(listener.part_written),
        parts_(options.outputs, options.write, options.rotate, listener.part_losses) {}

  // is_dump_wanted: somebody asked for the window as it is now. False: the recording has its full size.
  Result<bool> look(bool is_dump_wanted);
  // Waits for a part that is being written; where the rest of the recording goes.
  void finish(Recorded& recorded);

 private:
  bool is_full(uint64_t times) const;
  Result<void> start_part();
  void note(Result<void> looked);

  const RecordOptions& options_;
  pipeline::Pipeline& pipeline_;
  const format::RawWriter* raw_;
  std::function<void(profile::Profile&)> complete_;
  std::function<void(const std::string&)> on_part_;
  PartWriter parts_;
  std::optional<Error> error_;  // of the first part that could not be written
  size_t told_ = 0;
  bool is_dump_due_ = false;
};

}  // namespace cprof::session
