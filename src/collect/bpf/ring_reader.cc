#include "collect/bpf/ring_reader.h"

#include <bpf/libbpf.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace cprof::collect {
namespace {

// The thread looks again when the owner has not come for what it holds.
constexpr int kFullPauseMs = 5;
constexpr size_t kPieceBytes = 256 * 1024;

std::unexpected<Error> ring_failure(int error) {
  std::string text = std::string("bpf: mapping a ring buffer: ") + strerror(error);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (error == EMFILE) text += "; the limit is " + std::to_string(limit.rlim_cur) + " open files, raise it (ulimit -n), or take --backend perf";
  return fail(std::move(text), error);
}

size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

RingReader::~RingReader() {
  stop();
  if (rings_) ring_buffer__free(rings_);
}

void RingReader::stop() {
  if (!thread_) return;
  eventfd_write(stop_.get(), 1);
  pthread_join(*thread_, nullptr);
  thread_.reset();
}

Result<void> RingReader::add(int ring_map) {
  {
    std::lock_guard lock(mutex_);
    if (!rings_) rings_ = ring_buffer__new(ring_map, &on_record, this, nullptr);
    else if (int error = ring_buffer__add(rings_, ring_map, &on_record, this)) return ring_failure(-error);
    if (!rings_) return ring_failure(errno);
  }
  return thread_ ? Result<void>() : start_thread();
}

int RingReader::wait_fd() const { return rings_ ? ring_buffer__epoll_fd(rings_) : -1; }

// Signals are the owner's.
Result<void> RingReader::start_thread() {
  stop_ = Fd(eventfd(0, EFD_CLOEXEC));
  if (!stop_) return fail_errno("bpf: starting a thread that reads the rings");
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int error = pthread_create(&thread, nullptr, &run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error) return fail(std::string("bpf: starting a thread that reads the rings: ") + strerror(error), error);
  thread_ = thread;
  return {};
}

void* RingReader::run(void* self) {
  static_cast<RingReader*>(self)->read_until_stopped();
  return nullptr;
}

void RingReader::read_until_stopped() {
  pollfd waits[] = {{stop_.get(), POLLIN, 0}, {wait_fd(), POLLIN, 0}};
  bool is_full = false;
  while (true) {
    if (::poll(waits, is_full ? 1 : 2, is_full ? kFullPauseMs : -1) < 0 && errno != EINTR) return;
    if (waits[0].revents) return;
    std::lock_guard lock(mutex_);
    is_full = held_bytes_ >= kMostHeldBytes;
    if (!is_full) ring_buffer__consume(rings_);
    tell_behind();
  }
}

int RingReader::on_record(void* self, void* data, size_t size) {
  static_cast<RingReader*>(self)->hold({static_cast<const std::byte*>(data), size});
  return 0;
}

void RingReader::hold(std::span<const std::byte> record) {
  uint64_t length = record.size();
  size_t needed = sizeof(length) + padded(record.size());
  if (held_.empty() || held_.back().capacity() - held_.back().size() < needed) held_.emplace_back().reserve(std::max(kPieceBytes, needed));
  std::vector<std::byte>& piece = held_.back();
  const auto* head = reinterpret_cast<const std::byte*>(&length);
  piece.insert(piece.end(), head, head + sizeof(length));
  piece.insert(piece.end(), record.begin(), record.end());
  piece.resize(padded(piece.size()));
  held_bytes_ += needed;
}

void RingReader::tell_behind() {
  if (behind_) __atomic_store_n(behind_, held_bytes_ >= kMuchHeldBytes ? 1u : 0u, __ATOMIC_RELAXED);
}

void RingReader::read(const OnRecord& on_record) {
  if (!rings_) return;
  std::vector<std::vector<std::byte>> taken;
  {
    std::lock_guard lock(mutex_);
    ring_buffer__consume(rings_);
    taken.swap(held_);
    held_bytes_ = 0;
    tell_behind();
  }
  for (std::vector<std::byte>& piece : taken) {
    for (size_t at = 0; at < piece.size();) {
      uint64_t length = 0;
      memcpy(&length, &piece[at], sizeof(length));
      on_record(std::span(piece).subspan(at + sizeof(length), length));
      at += sizeof(length) + padded(length);
    }
    piece = std::vector<std::byte>();  // its reader copies what it keeps
  }
}

}  // namespace cprof::collect
