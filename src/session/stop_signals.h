// SIGINT, SIGTERM and the SIGHUP of a terminal that goes end a recording, they do not kill it: the first asks to stop, and what was
// recorded is written.
// A second one while writing has the usual effect, so that a hung write can be ended. SIGUSR2 asks, where it is wanted,
// to write what there is and to go on.
#pragma once

#include <csignal>

namespace cprof::session {

class StopSignals {
 public:
  explicit StopSignals(bool with_dumps);  // one instance at a time
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool requested() const;
  bool take_dump_request();  // true once per request

 private:
  bool with_dumps_;
  struct sigaction old_int_, old_term_, old_hup_, old_pipe_, old_usr2_;
};

}  // namespace cprof::session
