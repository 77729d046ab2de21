// cprof ctl PID start|stop|status|dump: asks the libcprof inside a running program (embed/control.h answers).
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/control_block.h"
#include "base/fd.h"
#include "base/file.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "load/load.h"
#include "object/process_files.h"

namespace cprof::cli {
namespace {

constexpr uint64_t kLookNs = 100'000'000;  // how often the program is looked after while it does not answer

struct CtlArguments {
  int pid = 0;
  std::string verb, options;
  OutputArguments output;
  double timeout = 30;
  bool json = false;
};

std::string fd_path(int pid, std::string_view name) { return fmt::format("/proc/{}/fd/{}", pid, name); }

// Where the process has the block in its memory: for one that has closed all its descriptors. Empty: nowhere.
std::string mapping_path(int pid) {
  const auto maps = object::read_maps(pid);
  if (!maps) return "";
  for (const object::MapsEntry& entry : *maps)
    if (entry.deleted && entry.path == fmt::format("/memfd:{}", kControlName))
      return fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, entry.start, entry.end);
  return "";
}

// The descriptor of the process that is the block.
Result<Fd> open_block(int pid) {
  DIR* listing = opendir(fd_path(pid, "").c_str());
  if (!listing) {
    const int error = errno;
    return fail_errno(fmt::format("{}process {}", error == ENOENT ? "" : "descriptors of ", pid), error);
  }
  std::string path;
  const std::string wanted = fmt::format("/memfd:{} (deleted)", kControlName);
  while (const dirent* entry = readdir(listing)) {
    char target[256];
    const std::string link = fd_path(pid, entry->d_name);
    const ssize_t size = readlink(link.c_str(), target, sizeof target);
    if (size > 0 && std::string_view(target, static_cast<size_t>(size)) == wanted) path = link;
  }
  closedir(listing);
  if (path.empty()) path = mapping_path(pid);
  if (path.empty())
    return fail(fmt::format("process {} has no libcprof inside that can be asked: run it with CPROF=... in its environment, or let "
                            "it call cprof_allow_control()", pid));
  Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return fail_errno(path);
  return fd;
}

class Controlled {
 public:
  static Result<Controlled> open(int pid, double timeout) {
    Controlled here(pid, timeout);
    here.fd_ = TRY(open_block(pid));
    // A file that cannot shrink: reading it never ends in a bus error.
    struct stat st;
    if (fstat(here.fd_.get(), &st) != 0 || st.st_size < static_cast<off_t>(sizeof(ControlBlock)) ||
        !(fcntl(here.fd_.get(), F_GET_SEALS) & F_SEAL_SHRINK))
      return fail(fmt::format("process {}: its block for cprof ctl is none", pid));
    void* memory = mmap(nullptr, sizeof(ControlBlock), PROT_READ | PROT_WRITE, MAP_SHARED, here.fd_.get(), 0);
    if (memory == MAP_FAILED) return fail_errno(fmt::format("process {}: its block", pid));
    here.block_ = static_cast<ControlBlock*>(memory);
    if (here.block_->magic != ControlBlock::kMagic) return fail(fmt::format("process {}: its block for cprof ctl is none", pid));
    if (here.block_->version != ControlBlock::kVersion)
      return fail(fmt::format("process {}: its libcprof speaks version {} of ctl, this cprof version {}", pid, here.block_->version,
                              ControlBlock::kVersion));
    if (flock(here.fd_.get(), LOCK_EX | LOCK_NB) != 0) return fail(fmt::format("process {}: another cprof ctl is asking it", pid));
    return here;
  }
  Controlled(Controlled&& other) noexcept
      : pid_(other.pid_), end_ns_(other.end_ns_), fd_(std::move(other.fd_)), block_(std::exchange(other.block_, nullptr)) {}
  ~Controlled() {
    if (block_) munmap(block_, sizeof(ControlBlock));
  }

  Result<void> ask(ControlVerb verb, std::string_view text) {
    TRY(wait_for_answer());  // of somebody who did not wait for it
    if (text.size() >= ControlBlock::kTextBytes) return fail("options longer than 2,047 bytes");
    block_->verb = verb;
    memcpy(block_->text, text.data(), text.size());
    block_->text[text.size()] = 0;
    __atomic_store_n(&block_->asked, __atomic_load_n(&block_->asked, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &block_->asked, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
    TRY(wait_for_answer());
    if (!block_->failed) return {};
    std::string why(block_->text, strnlen(block_->text, sizeof block_->text));
    std::ranges::replace_if(why, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');  // it is the program's: one line
    return fail(fmt::format("process {}: {}", pid_, why));
  }

  ControlStatus status() const { return block_->status; }
  Result<Fd> data() const {
    const std::string path = fd_path(pid_, std::to_string(block_->data_fd));
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat st;
    if (!fd || fstat(fd.get(), &st) != 0) return fail_errno(path);
    if (!S_ISREG(st.st_mode)) return fail(fmt::format("{}: is no dump", path));
    return fd;
  }

 private:
  Controlled(int pid, double timeout) : pid_(pid), end_ns_(monotonic_ns() + static_cast<uint64_t>(timeout * 1e9)) {}

  Result<void> wait_for_answer() {
    for (;;) {
      const uint32_t asked = __atomic_load_n(&block_->asked, __ATOMIC_RELAXED);
      const uint32_t answered = __atomic_load_n(&block_->answered, __ATOMIC_ACQUIRE);
      if (asked == answered) return {};
      if (kill(pid_, 0) != 0 && errno == ESRCH) return fail(fmt::format("process {} has ended", pid_));
      if (monotonic_ns() > end_ns_) return fail(fmt::format("process {} does not answer (is it stopped?)", pid_));
      const timespec look = {0, static_cast<long>(kLookNs)};
      syscall(SYS_futex, &block_->answered, FUTEX_WAIT, answered, &look, nullptr, 0);
    }
  }

  int pid_;
  uint64_t end_ns_;
  Fd fd_;
  ControlBlock* block_ = nullptr;
};

Result<void> copy(int from, OutputFile& to) {
  std::vector<std::byte> piece(256 << 10);
  for (;;) {
    const ssize_t got = read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("the dump");
    if (got == 0) return {};
    TRY(to.write(std::span(piece).first(static_cast<size_t>(got))));
  }
}

bool is_plain(const OutputArguments& o) {
  return o.format_name.empty() && o.weight == "samples" && o.metric.empty() && o.by == "process" && o.folded_style == "plain";
}

// What the library cannot write itself is made here, of a Perfetto trace, which holds all that it has.
Result<void> dump_to(const session::Output& output, Controlled& program, const OutputArguments& options) {
  const auto own = std::ranges::find_if(kControlEndings, [&](std::string_view ending) { return output.path.ends_with(ending); });
  const bool is_own = own != std::end(kControlEndings) && is_plain(options);
  TRY(program.ask(ControlVerb::kDump, is_own ? *own : ".pftrace"));
  const Fd data = TRY(program.data());
  if (is_own) {
    OutputFile file = TRY(OutputFile::create(output.path));
    TRY(copy(data.get(), file));
    return file.commit();
  }
  TemporaryFile trace = TRY(TemporaryFile::create());
  OutputFile file = TRY(OutputFile::onto(trace.fd(), trace.path()));
  TRY(copy(data.get(), file));
  TRY(file.commit());
  const profile::Profile profile = TRY(load::load_profile(trace.path(), {}));
  return session::write_outputs(profile, {output}, options.write_options(), say_output_losses);
}

Result<void> dump(Controlled& program, const CtlArguments& a) {
  const auto outputs = TRY(a.output.outputs());
  for (const session::Output& output : outputs) {
    auto written = dump_to(output, program, a.output);
    auto freed = program.ask(ControlVerb::kFree, "");
    TRY(written);
    TRY(freed);
    say(fmt::format("cprof: wrote {}", output.path));
  }
  return {};
}

std::string_view name_of_event(uint32_t kind) {
  constexpr std::string_view kNames[] = {"none", "perf task-clock", "CPU timers", "wall-clock timers"};
  return kind < std::size(kNames) ? kNames[kind] : "unknown";
}

void print_status(const ControlStatus& s, bool json) {
  const char* running = s.is_running ? "true" : "false";
  if (json)
    fmt::print(R"({{"running":{},"event":"{}","frequency_hz":{},"delivered_hz":{:.1f},"threads":{},"cpu_ns":{},"samples":{},)"
               R"("samples_lost":{},"scopes":{},"scopes_lost":{}}})" "\n",
               running, name_of_event(s.event_kind), s.frequency_hz, s.delivered_hz, s.threads, s.cpu_ns, s.samples, s.samples_lost,
               s.scopes_written, s.scopes_lost);
  else
    fmt::print("running: {}\nevent: {}\nasked: {} Hz\ndelivered: {:.1f} Hz\nthreads: {}\nCPU: {} ns\nsamples: {} ({} lost)\n"
               "scopes: {} ({} lost)\n",
               running, name_of_event(s.event_kind), s.frequency_hz, s.delivered_hz, s.threads, s.cpu_ns, s.samples, s.samples_lost,
               s.scopes_written, s.scopes_lost);
}

Result<void> control(const CtlArguments& a) {
  Controlled program = TRY(Controlled::open(a.pid, a.timeout));
  if (a.verb == "dump") return dump(program, a);
  TRY(program.ask(a.verb == "start"  ? ControlVerb::kStart
                  : a.verb == "stop" ? ControlVerb::kStop
                                     : ControlVerb::kStatus,
                  a.options));
  if (a.verb != "start") print_status(program.status(), a.json);
  return {};
}

Result<void> check(const CtlArguments& a) {
  if (a.verb == "dump" && a.output.paths.empty()) return fail("dump needs -o FILE");
  if (a.verb != "dump" && !a.output.paths.empty()) return fail("-o is for dump; start has out=FILE among its OPTIONS");
  if (a.verb != "start" && !a.options.empty()) return fail("OPTIONS are for start");
  if (!a.output.paths.empty()) TRY(a.output.outputs());
  return {};
}

}  // namespace

int ctl_main(std::vector<std::string> arguments) {
  CtlArguments a;
  CLI::App app("Drives the libcprof inside a running program: starts and stops its sessions, tells how they go, and takes what was "
               "recorded so far; the program writes no file for that.", "cprof ctl");
  app.add_option("pid", a.pid, "the program")->required()->check(kAboveZero);
  app.add_option("command", a.verb, "start, stop, status or dump")->required()->check(CLI::IsMember({"start", "stop", "status", "dump"}));
  app.add_option("options", a.options, "of start: as in CPROF, for instance freq=999,out=app.folded; else those the program has");
  app.add_option("--timeout", a.timeout, "seconds until a program that does not answer is given up")
      ->check(kAboveZero)->capture_default_str();
  app.add_flag("--json", a.json, "status and stop as one line of JSON");
  a.output.add_to(app, true);
  if (auto status = parse(app, std::move(arguments))) return *status;
  if (auto good = check(a); !good) return wrong_usage(good.error());
  auto done = control(a);
  return done ? kDone : fail_with(done.error());
}

}  // namespace cprof::cli
