// Keeps NAME.part beside the output while a recording goes on, so that a killed run loses its last seconds only. Used by
// session::record(), on its thread; costs nothing when no output's format can grow, or when the run is short.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "event/event.h"
#include "format/format.h"
#include "pipeline/pipeline.h"
#include "session/record.h"

namespace cprof::session {

class Checkpoint {
 public:
  Checkpoint(const std::vector<Output>& outputs, pipeline::Pipeline& pipeline, event::Collector& collector);

  // Commits when it is time to. A failure ends it, not the recording.
  void look(uint64_t now_ns);
  // Nothing is committed any more. The file goes once the real one is written.
  void finish(Recorded& recorded);
  // What went wrong with it, if anything.
  void tell(Diagnostics& losses) const;

 private:
  Result<void> commit();

  pipeline::Pipeline& pipeline_;
  event::Collector& collector_;
  std::string path_;
  std::unique_ptr<format::GrowingFile> file_;  // null: there is none, or it failed
  std::string error_;
  uint64_t next_ns_ = 0, renumberings_ = 0;
  bool is_made_ = false;
};

}  // namespace cprof::session
