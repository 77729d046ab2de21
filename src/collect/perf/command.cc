#include "collect/perf/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

namespace cprof::collect {
namespace {

ssize_t read_retrying(int fd, void* into, size_t size) {
  ssize_t n;
  do n = read(fd, into, size);
  while (n < 0 && errno == EINTR);
  return n;
}

// What cprof does about signals is not the child's: it may be waiting still when Ctrl-C ends both.
void forget_handlers() {
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR2, SIGPIPE}) {
    struct sigaction action = {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) signal(number, SIG_DFL);
  }
}

[[noreturn]] void run_child(char* const* argv, int go, int error) {
  char byte;
  if (read_retrying(go, &byte, 1) != 1) _exit(0);
  execvp(argv[0], argv);
  int number = errno;
  // The parent reads this; when it is gone nobody needs it.
  [[maybe_unused]] ssize_t n = write(error, &number, sizeof(number));
  _exit(number == ENOENT ? Command::kNotFound : Command::kNotExecutable);
}

}  // namespace

Result<Command> Command::fork(const std::vector<std::string>& argv) {
  if (argv.empty()) return fail("no command to run");
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  int go[2], error[2];
  if (pipe2(go, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd go_read(go[0]), go_write(go[1]);
  if (pipe2(error, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd error_read(error[0]), error_write(error[1]);
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  pid_t pid = ::fork();
  const int fork_errno = errno;
  if (pid == 0) forget_handlers();
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return fail_errno("fork", fork_errno);
  if (pid == 0) {
    go_write.reset();  // else its own copy would keep it waiting when the parent dies
    run_child(pointers.data(), go_read.get(), error_write.get());
  }
  return Command(argv[0], pid, std::move(go_write), std::move(error_read));
}

Command::Command(Command&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      go_(std::move(other.go_)),
      error_(std::move(other.error_)),
      status_(other.status_) {}

Command::~Command() {
  if (pid_ < 0 || status_ >= 0 || !go_) return;
  go_.reset();
  waitpid(pid_, nullptr, 0);
}

Result<void> Command::release() {
  char byte = 1;
  if (write(go_.get(), &byte, 1) != 1) return fail_errno(name_ + ": the waiting child");
  go_.reset();
  int number = 0;
  ssize_t n = read_retrying(error_.get(), &number, sizeof(number));
  error_.reset();
  if (n != sizeof(number)) return {};
  int wait_status = 0;
  if (waitpid(pid_, &wait_status, 0) == pid_) note_status(wait_status);
  return fail_errno(name_, number);
}

bool Command::has_ended() {
  if (status_ >= 0) return true;
  int wait_status = 0;
  if (waitpid(pid_, &wait_status, WNOHANG) == pid_) note_status(wait_status);
  return status_ >= 0;
}

void Command::note_status(int wait_status) {
  status_ = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace cprof::collect
