#include "session/stop_signals.h"

namespace cprof::session {
namespace {

volatile std::sig_atomic_t stop_requested = 0;

volatile std::sig_atomic_t dump_requested = 0;

void on_signal(int) { stop_requested = 1; }
void on_dump(int) { dump_requested = 1; }
// As good as ignoring it, but a command that is executed does not inherit it.
void on_pipe(int) {}

}  // namespace

StopSignals::StopSignals(bool with_dumps) : with_dumps_(with_dumps) {
  stop_requested = 0;
  dump_requested = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
  sigaction(SIGHUP, nullptr, &old_hup_);
  if (old_hup_.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup
  struct sigaction pipe = {};
  pipe.sa_handler = on_pipe;
  pipe.sa_flags = SA_RESTART;
  sigaction(SIGPIPE, nullptr, &old_pipe_);
  if (old_pipe_.sa_handler != SIG_IGN) sigaction(SIGPIPE, &pipe, nullptr);
  if (!with_dumps_) return;
  struct sigaction dump = {};
  dump.sa_handler = on_dump;
  sigaction(SIGUSR2, &dump, &old_usr2_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
  sigaction(SIGHUP, &old_hup_, nullptr);
  sigaction(SIGPIPE, &old_pipe_, nullptr);
  if (with_dumps_) sigaction(SIGUSR2, &old_usr2_, nullptr);
}

bool StopSignals::requested() const { return stop_requested != 0; }

bool StopSignals::take_dump_request() {
  if (!dump_requested) return false;
  dump_requested = 0;
  return true;
}

}  // namespace cprof::session
