#include "embed/library.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "collect/inproc/handler.h"
#include "embed/control.h"
#include "embed/import_hooks.h"
#include "embed/scopes.h"
#include "embed/trigger.h"

namespace cprof::embed {
namespace {

constexpr const char* kRunVariable = "CPROF_RUN";   // the pid of the first process of a run

alignas(Library) char storage[sizeof(Library)];
std::atomic<Library*> instance{nullptr};
pthread_once_t once = PTHREAD_ONCE_INIT;
pthread_key_t end_key;

bool is_first_process() {
  const std::string own = std::to_string(getpid());
  const char* first = getenv(kRunVariable);
  if (!first) setenv(kRunVariable, own.c_str(), 0);
  return !first || own == first;
}

}  // namespace

// A reader of stderr that is gone must not end the program: the write's SIGPIPE is taken back.
void say(const std::string& line) {
  const std::string text = "cprof: " + line + "\n";
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  constexpr timespec kNoWait = {};
  if (written < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE)) sigtimedwait(&pipe, nullptr, &kNoWait);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Library::exists() { return instance.load(std::memory_order_acquire) != nullptr; }

Library& Library::get() {
  pthread_once(&once, [] { instance.store(new (storage) Library, std::memory_order_release); });
  return *instance.load(std::memory_order_acquire);
}

Library::Library() : pid_(getpid()) {
  pthread_key_create(&end_key, [](void* state) { get().threads_.end_current(static_cast<inproc::ThreadState*>(state)); });
  pthread_atfork([] { get().before_fork(); }, [] { get().after_fork_in_parent(); }, [] { get().after_fork_in_child(); });
}

inproc::ThreadState* Library::attach(bool with_ring) {
  inproc::ThreadState* state = cprof_thread_ ? inproc::ThreadState::of(cprof_thread_) : nullptr;
  if (!state || !pthread_getspecific(end_key)) {
    state = threads_.attach_current();
    if (!state) return nullptr;
    pthread_setspecific(end_key, state);
  }
  if (!with_ring || state->scopes.ring) return state;
  return ThreadRegistry::give_ring(*state, ring_records_) ? state : nullptr;
}

void Library::set_by_environment() {
  is_told_ = true;
  folder_ = working_folder();
}

Result<void> Library::start(std::string_view text) {
  Options options = TRY(parse_options(text));
  std::lock_guard lock(control_);
  settle_outputs(options.outputs, folder_.empty() ? working_folder() : folder_);
  if (session_) return fail("a session runs already");
  return start_locked(options);
}

Result<void> Library::start_locked(const Options& options) {
  Surroundings around{threads_, names_, modules_, limits_,
                      {program_invocation_short_name, getpid(), sessions_, is_first_process()}};
  ring_records_ = options.ring_records;
  auto session = std::make_unique<Session>(options, around);
  TRY(session->start());
  session_ = std::move(session);
  has_session_ = true;
  hook_imports();
  return {};
}

Result<void> Library::stop_locked() {
  Result<void> result = session_->stop();
  tell(session_->summary());
  if (!result) tell(result.error().message);
  sessions_ += session_->numbers_used();
  has_session_ = false;
  session_.reset();
  return result;
}

Result<void> Library::stop() {
  std::lock_guard lock(control_);
  if (!session_) return fail("no session runs");
  return stop_locked();
}

Result<void> Library::dump(const std::string& path) {
  std::lock_guard lock(control_);
  if (!session_) return fail("no session runs");
  return session_->dump(path);
}

Result<void> Library::dump_onto(int fd, const std::string& name) {
  std::lock_guard lock(control_);
  if (!session_) return fail("no session runs");
  return session_->dump_onto(fd, name);
}

Result<void> Library::limit_scope(std::string_view name, uint64_t longest_ns) {
  if (limits_.add(names_.of_site(name), longest_ns)) return {};
  return fail("limits for more than " + std::to_string(ScopeLimits::kMost) + " names of scopes");
}

void Library::fill(cprof_status& status) {
  memset(&status, 0, sizeof status);
  std::lock_guard lock(control_);
  status.is_running = session_ != nullptr;
  if (session_) session_->fill(status);
}

// To people, for sessions that the environment started: the first process of a run, in one line.
void Library::tell(const std::string& line) const {
  if (is_told_ && !session_->options().quiet && is_first_process()) say(line);
}

// A signal during fork() of a large process makes the kernel begin anew each time: none comes while it runs.
void Library::before_fork() {
  sigset_t sampling;
  sigemptyset(&sampling);
  if (inproc::sampling_signal()) sigaddset(&sampling, inproc::sampling_signal());
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &sampling, &before);
  control_.lock();
  if (session_) session_->lock_for_fork();
  threads_.lock_for_fork();
  names_.lock_for_fork();
  lock_fibers_for_fork();
  mask_before_fork_ = before;
}

void Library::after_fork_in_parent() {
  const sigset_t before = mask_before_fork_;
  unlock_fibers_after_fork();
  names_.unlock_after_fork();
  threads_.unlock_after_fork();
  if (session_) session_->unlock_after_fork();
  control_.unlock();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Library::after_fork_in_child() {
  const sigset_t before = mask_before_fork_;
  __atomic_store_n(&cprof_enabled_, 0, __ATOMIC_RELEASE);
  pid_ = getpid();
  inproc::handler_setting.process_id = pid_;
  inproc::handler_setting.modules = nullptr;
  modules_.forget_old();
  threads_.abandon_in_child();
  pthread_setspecific(end_key, nullptr);
  // The parent's session and its data stay where they are: its collector is not here, and its locks are held by nobody.
  Session* parents = session_.release();
  has_session_ = false;
  sessions_ = 0;
  unlock_fibers_after_fork();
  names_.unlock_after_fork();
  threads_.unlock_after_fork();
  if (parents && parents->options().children == Children::kYes) {
    auto started = start_locked(parents->options());
    if (!started && is_told_) say("this child is not recorded: " + started.error().message);
  }
  renew_trigger_in_child();
  renew_control_in_child();
  control_.unlock();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Library::at_exit() {
  if (pid_ != getpid()) return;   // a vfork child on its parent's memory
  std::lock_guard lock(control_);
  if (session_) (void)stop_locked();
}

}  // namespace cprof::embed
