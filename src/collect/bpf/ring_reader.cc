#include "collect/bpf/ring_reader.h"

#include <bpf/libbpf.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace cprof::collect {
namespace {

// The thread looks again when the owner has not come for what it holds.
constexpr int kFullPauseMs = 5;

size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

RingReader::~RingReader() {
  if (thread_) {
    eventfd_write(stop_.get(), 1);
    pthread_join(*thread_, nullptr);
  }
  if (rings_) ring_buffer__free(rings_);
}

Result<void> RingReader::add(int ring_map) {
  {
    std::lock_guard lock(mutex_);
    if (!rings_) rings_ = ring_buffer__new(ring_map, &hold, this, nullptr);
    else if (int error = ring_buffer__add(rings_, ring_map, &hold, this)) return fail("bpf: mapping a ring buffer", -error);
    if (!rings_) return fail_errno("bpf: mapping a ring buffer");
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
    is_full = held_.size() >= kMostHeldBytes;
    if (!is_full) ring_buffer__consume(rings_);
  }
}

int RingReader::hold(void* self, void* data, size_t size) {
  std::vector<std::byte>& held = static_cast<RingReader*>(self)->held_;
  size_t at = held.size();
  held.resize(at + sizeof(uint64_t) + padded(size));
  uint64_t length = size;
  memcpy(&held[at], &length, sizeof(length));
  memcpy(&held[at + sizeof(length)], data, size);
  return 0;
}

void RingReader::read(const OnRecord& on_record) {
  if (!rings_) return;
  {
    std::lock_guard lock(mutex_);
    ring_buffer__consume(rings_);
    taken_.swap(held_);
  }
  for (size_t at = 0; at < taken_.size();) {
    uint64_t length = 0;
    memcpy(&length, &taken_[at], sizeof(length));
    on_record(std::span(taken_).subspan(at + sizeof(length), length));
    at += sizeof(length) + padded(length);
  }
  taken_.clear();
}

}  // namespace cprof::collect
