// SIGINT and SIGTERM end a recording, they do not kill it: the first asks to stop, and what was recorded is written.
// A second one while writing has the usual effect, so that a hung write can be ended.
#pragma once

#include <csignal>

namespace cprof::session {

class StopSignals {
 public:
  StopSignals();   // one instance at a time
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool requested() const;

 private:
  struct sigaction old_int_, old_term_, old_pipe_;
};

}  // namespace cprof::session
