// A small perf collector. The child waits on a pipe until one event per CPU is open on it (inherited by its children,
// enabled by its exec); records of all rings are kept, sorted by time and replayed through a table of address spaces.

#include "capture.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace cprof::oracle {
namespace {

constexpr uint64_t kRegisterMask = 0xff01ff;  // ax bx cx dx si di bp sp ip, r8-r15
constexpr size_t kRingBytes = 4 << 20;
constexpr uint64_t kSampleType =
    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

perf_event_attr make_attr(const CaptureOptions& options) {
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.freq = 1;
  attr.sample_freq = options.frequency_hz;
  attr.sample_type = kSampleType;
  attr.sample_regs_user = kRegisterMask;
  attr.sample_stack_user = options.stack_bytes;
  attr.disabled = 1;
  attr.inherit = 1;
  attr.enable_on_exec = 1;
  attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  attr.wakeup_watermark = kRingBytes / 8;
  return attr;
}

int open_event(perf_event_attr& attr, pid_t pid, int cpu) {
  return static_cast<int>(syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

struct Record {
  uint64_t time = 0;
  std::vector<std::byte> bytes;  // header included
  const perf_event_header& header() const { return *reinterpret_cast<const perf_event_header*>(bytes.data()); }
};

class Cursor {
 public:
  explicit Cursor(const Record& record) : p_(record.bytes.data() + sizeof(perf_event_header)) {}
  template <typename T>
  T take() {
    T value;
    memcpy(&value, p_, sizeof value);
    p_ += sizeof value;
    return value;
  }
  const std::byte* bytes(size_t count) {
    const std::byte* at = p_;
    p_ += count;
    return at;
  }

 private:
  const std::byte* p_;
};

uint64_t time_of(const std::vector<std::byte>& bytes) {
  const auto& header = *reinterpret_cast<const perf_event_header*>(bytes.data());
  size_t at = header.type == PERF_RECORD_SAMPLE ? sizeof header + 16 : bytes.size() - 8;
  uint64_t time;
  memcpy(&time, bytes.data() + at, sizeof time);
  return time;
}

class Ring {
 public:
  Ring(int fd, void* base) : fd_(fd), page_(static_cast<perf_event_mmap_page*>(base)) {}
  Ring(const Ring&) = delete;
  Ring(Ring&& other) noexcept : fd_(std::exchange(other.fd_, -1)), page_(std::exchange(other.page_, nullptr)) {}
  ~Ring() {
    if (page_) munmap(page_, kRingBytes + static_cast<size_t>(getpagesize()));
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

  // Appends what is there; gives the number of samples among it.
  size_t drain(std::vector<Record>& records) {
    uint64_t head = __atomic_load_n(&page_->data_head, __ATOMIC_ACQUIRE), tail = page_->data_tail;
    size_t samples = 0;
    while (tail < head) {
      perf_event_header header;
      copy(tail, &header, sizeof header);
      Record record;
      record.bytes.resize(header.size);
      copy(tail, record.bytes.data(), header.size);
      record.time = time_of(record.bytes);
      samples += header.type == PERF_RECORD_SAMPLE;
      records.push_back(std::move(record));
      tail += header.size;
    }
    __atomic_store_n(&page_->data_tail, tail, __ATOMIC_RELEASE);
    return samples;
  }

 private:
  void copy(uint64_t position, void* into, size_t count) const {
    const auto* data = reinterpret_cast<const std::byte*>(page_) + page_->data_offset;
    size_t at = position % kRingBytes, first = std::min(count, kRingBytes - at);
    memcpy(into, data + at, first);
    memcpy(static_cast<std::byte*>(into) + first, data, count - first);
  }

  int fd_;
  perf_event_mmap_page* page_;
};

struct Child {
  pid_t pid = -1;
  int go = -1;  // writing a byte lets it exec
};

Child start_child(const std::vector<std::string>& command) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return {};
  pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    char byte;
    if (read(pipe_fds[0], &byte, 1) != 1) _exit(127);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    std::vector<char*> argv;
    for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(pipe_fds[0]);
  setpgid(pid, pid);
  return {pid, pipe_fds[1]};
}

std::string open_rings(perf_event_attr attr, pid_t pid, std::vector<Ring>& rings) {
  long cpus = sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < cpus; ++cpu) {
    int fd = open_event(attr, pid, cpu);
    if (fd < 0 && errno == ENODEV) continue;  // an offline CPU
    if (fd < 0) return fmt::format("perf_event_open: {}", strerror(errno));
    void* base = mmap(nullptr, kRingBytes + static_cast<size_t>(getpagesize()), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
      close(fd);
      return fmt::format("mmap of a ring: {}", strerror(errno));
    }
    rings.emplace_back(fd, base);
  }
  return rings.empty() ? "no CPU" : "";
}

// Replays records in time order: each sample gets the address space of its moment.
class Replay {
 public:
  Replay(Capture& out, size_t max) : out_(out), max_(max) {}

  void on(const Record& record) {
    const perf_event_header& header = record.header();
    if (header.type == PERF_RECORD_SAMPLE) on_sample(record);
    if (header.type == PERF_RECORD_MMAP2) on_mmap(record);
    if (header.type == PERF_RECORD_COMM && (header.misc & PERF_RECORD_MISC_COMM_EXEC)) spaces_.erase(first_pid(record));
    if (header.type == PERF_RECORD_FORK) on_fork(record);
    if (header.type == PERF_RECORD_LOST) on_lost(record);
  }

 private:
  static int32_t first_pid(const Record& record) { return Cursor(record).take<int32_t>(); }

  void on_lost(const Record& record) {
    Cursor in(record);
    in.take<uint64_t>();
    out_.lost += in.take<uint64_t>();
  }

  void on_fork(const Record& record) {
    Cursor in(record);
    auto pid = in.take<int32_t>(), parent = in.take<int32_t>();
    if (pid == parent) return;  // a thread
    auto it = spaces_.find(parent);
    if (it != spaces_.end()) spaces_[pid] = it->second;
  }

  void on_mmap(const Record& record) {
    Cursor in(record);
    auto pid = in.take<int32_t>();
    in.take<int32_t>();
    Mapping mapping;
    mapping.start = in.take<uint64_t>();
    mapping.end = mapping.start + in.take<uint64_t>();
    mapping.file_offset = in.take<uint64_t>();
    in.bytes(32);  // device, inode, protection, flags
    mapping.path = reinterpret_cast<const char*>(in.bytes(0));
    auto& space = spaces_[pid];
    auto changed = space ? std::make_shared<AddressSpace>(*space) : std::make_shared<AddressSpace>();
    std::erase_if(*changed, [&](const auto& old) { return old.second.start < mapping.end && old.second.end > mapping.start; });
    changed->emplace(mapping.start, mapping);
    space = changed;
  }

  void on_sample(const Record& record) {
    if (out_.snapshots.size() >= max_) return;
    Cursor in(record);
    in.take<uint64_t>();  // ip
    Snapshot snapshot;
    snapshot.pid = in.take<int32_t>();
    snapshot.tid = in.take<int32_t>();
    in.take<uint64_t>();  // time
    if (in.take<uint64_t>() != PERF_SAMPLE_REGS_ABI_64) {
      ++out_.without_user;
      return;
    }
    uint64_t raw[17];
    for (uint64_t& value : raw) value = in.take<uint64_t>();
    static constexpr int kDwarfToRaw[17] = {0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 8};
    for (int i = 0; i < 17; ++i) snapshot.registers[i] = raw[kDwarfToRaw[i]];
    auto size = in.take<uint64_t>();
    const std::byte* stack = in.bytes(size);
    uint64_t written = size ? in.take<uint64_t>() : 0;
    snapshot.stack.assign(stack, stack + written);
    snapshot.space = spaces_[snapshot.pid];
    // Inside execve the registers are still those of the image before it.
    if (!snapshot.space || !find_mapping(*snapshot.space, snapshot.pc())) {
      ++out_.without_user;
      return;
    }
    out_.snapshots.push_back(std::move(snapshot));
  }

  Capture& out_;
  size_t max_;
  std::map<int32_t, std::shared_ptr<const AddressSpace>> spaces_;
};

void collect(std::vector<Ring>& rings, const CaptureOptions& options, pid_t child, std::vector<Record>& records) {
  double end = now() + options.max_seconds;
  size_t samples = 0;
  bool running = true;
  while (running && samples < options.max_snapshots && now() < end) {
    std::vector<pollfd> polls;
    for (const Ring& ring : rings) polls.push_back({ring.fd(), POLLIN, 0});
    poll(polls.data(), polls.size(), 10);
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0) running = info.si_pid == 0;
    for (Ring& ring : rings) samples += ring.drain(records);
  }
}

}  // namespace

const Mapping* find_mapping(const AddressSpace& space, uint64_t pc) {
  auto it = space.upper_bound(pc);
  if (it == space.begin()) return nullptr;
  --it;
  return pc < it->second.end ? &it->second : nullptr;
}

std::string why_capture_is_impossible() {
  perf_event_attr attr = make_attr({});
  attr.enable_on_exec = 0;
  int fd = open_event(attr, 0, -1);
  if (fd < 0) return fmt::format("perf_event_open with user stacks: {}", strerror(errno));
  close(fd);
  return "";
}

Capture capture(const CaptureOptions& options, std::string& error) {
  Capture out;
  Child child = start_child(options.command);
  if (child.pid < 0) {
    error = fmt::format("fork: {}", strerror(errno));
    return out;
  }
  std::vector<Ring> rings;
  error = open_rings(make_attr(options), child.pid, rings);
  std::vector<Record> records;
  if (error.empty() && write(child.go, "g", 1) == 1) collect(rings, options, child.pid, records);
  close(child.go);
  kill(-child.pid, SIGKILL);
  int status = 0;
  waitpid(child.pid, &status, 0);
  if (error.empty() && WIFEXITED(status) && WEXITSTATUS(status) == 127) error = "could not be started";
  std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.time < b.time; });
  Replay replay(out, options.max_snapshots);
  for (const Record& record : records) replay.on(record);
  return out;
}

}  // namespace cprof::oracle
