// Reads the rings of the BPF programs: when its owner asks, and from a thread of its own while the owner is busy, say
// compiling a large file's unwind table. What the thread reads is held in memory up to a limit; then it leaves records in
// the rings, where those that do not fit are counted. Used by WalkMaps and UprobeObject, on one thread; never looks into a record.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

struct ring_buffer;

namespace cprof::collect {

class RingReader {
 public:
  static constexpr size_t kMuchHeldBytes = 24 << 20, kMostHeldBytes = 64 << 20;

  RingReader() = default;
  RingReader(const RingReader&) = delete;
  ~RingReader();

  // Where the programs look whether much is held; lives until stop().
  void tell_behind_in(uint32_t* word) { behind_ = word; }
  void stop();
  Result<void> add(int ring_map);
  int wait_fd() const;                           // readable when a ring wants to be read at once
  // Each ring's records in their order, none of which was written later than this returns.
  using OnRecord = std::function<void(std::span<const std::byte>)>;
  void read(const OnRecord& on_record);

 private:
  static int on_record(void* self, void* data, size_t size);
  void hold(std::span<const std::byte> record);
  void tell_behind();
  static void* run(void* self);
  Result<void> start_thread();
  void read_until_stopped();

  ring_buffer* rings_ = nullptr;
  std::mutex mutex_;                             // of what follows, and of reading the rings
  std::vector<std::vector<std::byte>> held_;     // pieces: a size and a record, each padded to 8 bytes, again and again
  size_t held_bytes_ = 0;
  uint32_t* behind_ = nullptr;
  std::optional<pthread_t> thread_;
  Fd stop_;                                      // an event that ends the thread
};

}  // namespace cprof::collect
