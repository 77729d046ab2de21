#include "embed/control.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/control_block.h"
#include "base/fd.h"
#include "embed/library.h"

namespace cprof::embed {
namespace {

struct Control {
  Fd fd, dumped;
  ino_t file = 0;   // what fd is: a program that closes every descriptor may have another file there later
  ControlBlock* block = nullptr;
  std::string options;
};
Control* control = nullptr;
std::atomic<bool> is_open{false};  // set before it is made: no lock that a fork could leave held

ControlStatus status_now() {
  cprof_status now;
  Library::get().fill(now);
  return {.is_running = static_cast<uint32_t>(now.is_running),
          .event_kind = static_cast<uint32_t>(now.event_kind),
          .frequency_hz = now.frequency_hz,
          .threads = now.threads,
          .samples = now.samples,
          .samples_lost = now.samples_lost,
          .scopes_written = now.scopes_written,
          .scopes_lost = now.scopes_lost,
          .cpu_ns = now.cpu_ns,
          .delivered_hz = now.delivered_hz};
}

Result<void> dump(Control& here, const std::string& name) {
  Fd fd(memfd_create("cprof-dump", MFD_CLOEXEC));
  if (!fd) return fail_errno("memfd_create");
  TRY(Library::get().dump_onto(fd.get(), name));
  here.block->data_fd = fd.get();
  here.dumped = std::move(fd);
  return {};
}

Result<void> done(Control& here, ControlVerb verb, const std::string& text) {
  switch (verb) {
    case ControlVerb::kStart: return Library::get().start(text.empty() ? here.options : text);
    case ControlVerb::kStop: return Library::get().stop();
    case ControlVerb::kStatus: return {};
    case ControlVerb::kDump: return dump(here, text);
    case ControlVerb::kFree: return here.dumped = Fd(), Result<void>();
  }
  return fail("this version of libcprof does not know that request");
}

void answer(Control& here) {
  ControlBlock& block = *here.block;
  const std::string text(block.text, strnlen(block.text, sizeof block.text));
  const ControlVerb verb = block.verb;
  if (verb == ControlVerb::kStop) block.status = status_now();
  auto result = done(here, verb, text);
  if (verb != ControlVerb::kStop) block.status = status_now();
  block.failed = !result;
  if (!result) {
    strncpy(block.text, result.error().message.c_str(), sizeof block.text - 1);
    block.text[sizeof block.text - 1] = 0;
  }
}

void futex(uint32_t* word, int operation, uint32_t value, const timespec* longest = nullptr) {
  syscall(SYS_futex, word, operation, value, longest, nullptr, 0);
}

// Until the program is over: the last thread of a process ends it, and this must not be the one that never does.
void* wait_for_requests(void* argument) {
  constexpr timespec kBetweenLooks = {1, 0};
  Control& here = *static_cast<Control*>(argument);
  pthread_setname_np(pthread_self(), "cprof-control");
  Library::get().threads().leave_out(OwnThread::kControl, current_tid());
  uint32_t seen = 0;
  for (;;) {
    const uint32_t asked = __atomic_load_n(&here.block->asked, __ATOMIC_ACQUIRE);
    if (asked == seen) {
      futex(&here.block->asked, FUTEX_WAIT, seen, &kBetweenLooks);
      if (Library::get().threads().is_program_over()) return nullptr;
      continue;
    }
    seen = asked;
    answer(here);
    __atomic_store_n(&here.block->answered, asked, __ATOMIC_RELEASE);
    futex(&here.block->answered, FUTEX_WAKE, INT32_MAX);
  }
}

ino_t inode_of(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

Result<void> make_block(Control& here) {
  here.fd = Fd(memfd_create(kControlName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!here.fd || ftruncate(here.fd.get(), sizeof(ControlBlock)) != 0 ||
      fcntl(here.fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_errno("the block of cprof ctl");
  void* memory = mmap(nullptr, sizeof(ControlBlock), PROT_READ | PROT_WRITE, MAP_SHARED, here.fd.get(), 0);
  if (memory == MAP_FAILED) return fail_errno("the block of cprof ctl");
  here.block = static_cast<ControlBlock*>(memory);
  here.file = inode_of(here.fd.get());
  here.block->version = ControlBlock::kVersion;
  __atomic_store_n(&here.block->magic, ControlBlock::kMagic, __ATOMIC_RELEASE);
  return {};
}

Result<void> start_waiting(Control& here) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, wait_for_requests, &here);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error) return fail(std::string("the thread of cprof ctl: ") + strerror(error), error);
  pthread_detach(thread);
  return {};
}

}  // namespace

Result<void> open_control(std::string_view options) {
  if (is_open.exchange(true)) return {};
  auto made = std::make_unique<Control>();
  made->options = options;
  auto result = make_block(*made);
  if (result) result = start_waiting(*made);
  if (!result) return is_open = false, result;
  control = made.release();  // its thread ends with the program
  return {};
}

void renew_control_in_child() {
  if (!control) return;
  Control* parents = control;
  control = nullptr;
  is_open = false;
  munmap(parents->block, sizeof(ControlBlock));
  if (inode_of(parents->fd.get()) != parents->file) parents->fd.release();
  parents->fd = Fd();
  parents->dumped = Fd();
  auto options = parse_options(parents->options);
  if (!options || options->children != Children::kYes) return;
  if (auto opened = open_control(parents->options); !opened) say("this child cannot be asked by cprof ctl: " + opened.error().message);
}

}  // namespace cprof::embed
