#include "embed/recording.h"

#include <algorithm>

namespace cprof::embed {
namespace {

constexpr uint64_t kBatch = 4096;
constexpr uint64_t kFewStackBytes = 1 << 20;   // not worth looking for unused ones
constexpr uint64_t kMix = 0x9e3779b97f4a7c15;

uint64_t hash_of(std::span<const StoredFrame> frames) {
  uint64_t hash = frames.size();
  for (const StoredFrame& frame : frames) {
    hash = (hash ^ frame.address) * kMix;
    hash ^= hash >> 29 ^ frame.file;
  }
  return hash;
}

}  // namespace

StoredThread& Recording::row_of(LiveThread& thread) {
  if (thread.row == UINT32_MAX) {
    if (free_rows_.empty()) {
      thread.row = static_cast<uint32_t>(threads_.size());
      threads_.emplace_back();
    } else {
      thread.row = free_rows_.back();
      free_rows_.pop_back();
    }
    threads_[thread.row] = {.tid = thread.tid, .name = {}, .start_ticks = thread.start_ticks, .records = {}, .open = {}};
    bytes_ += sizeof(StoredThread);
    threads_seen_++;
  }
  return threads_[thread.row];
}

bool Recording::make_room(uint64_t bytes) {
  if (bytes_ + bytes > options_.buffer_bytes) return false;
  bytes_ += bytes;
  return true;
}

uint32_t Recording::intern_stack(std::span<const StoredFrame> frames) {
  const uint64_t hash = hash_of(frames);
  const auto [first, last] = stack_ids_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (std::ranges::equal(frames_of(it->second), frames)) return it->second;
  const uint32_t id = static_cast<uint32_t>(stacks_.size());
  stacks_.push_back({static_cast<uint32_t>(frames_.size()), static_cast<uint32_t>(frames.size())});
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  stack_ids_.emplace(hash, id);
  bytes_ += frames.size_bytes() + 64;
  stack_bytes_ += frames.size_bytes() + 64;
  return id;
}

bool Recording::drain_samples(LiveThread& thread, const ModuleTracker& modules) {
  inproc::SampleRing& ring = thread.state->samples;
  const uint64_t available = ring.available();
  size_t added = 0;
  const uint64_t period = 1'000'000'000 / std::max(options_.frequency_hz, 1u);
  for (uint64_t taken = 0; taken < available;) {
    const auto header = inproc::SampleHeader::from_words(ring.peek(0), ring.peek(1), ring.peek(2));
    const uint64_t words = inproc::SampleHeader::kWords + header.frame_count;
    scratch_.clear();
    for (uint64_t n = 0; n < header.frame_count; n++) {
      const uint64_t word = ring.peek(inproc::SampleHeader::kWords + n), pc = word & ~inproc::kExactPc;
      const bool is_exact = word & inproc::kExactPc;
      const auto place = modules.resolve(header.generation, pc - !is_exact);
      scratch_.push_back(place ? StoredFrame{place->svma + !is_exact, place->file, is_exact}
                               : StoredFrame{pc, StoredFrame::kNoFile, is_exact});
    }
    ring.consume(words);
    taken += words;
    unknown_code_ |= header.end == inproc::WalkEnd::kNoModule || header.end == inproc::WalkEnd::kNoRule;
    counts_.samples++;
    // A scope with a rate of its own gives shorter spans; a late timer longer ones.
    const uint32_t times = std::max(1u, static_cast<uint32_t>((header.span_ns + period / 2) / period));
    counts_.periods += times;
    counts_.ends[static_cast<size_t>(header.end)]++;
    row_of(thread).samples++;
    if (!make_room(sizeof(StoredSample))) {
      counts_.samples_lost++;
      counts_.samples--;
      if (options_.overflow == Overflow::kDrop || samples_.size() <= added) continue;
      drop_oldest_sample();
      bytes_ += sizeof(StoredSample);
    }
    row_of(thread).kept_samples++;
    samples_.push_back({header.ticks, 0, thread.row, intern_stack(scratch_), header.track, header.span_ns, times, header.end});
    added++;
  }
  const uint64_t lost = ring.lost();
  counts_.samples_lost += lost - thread.lost_samples_seen;
  thread.lost_samples_seen = lost;
  weigh(thread, samples_.size() - added);
  return available * 2 > ring.capacity();
}

// The CPU time since the last look belongs to the samples since then, in the measure of the time that they stand for:
// ticks that were not delivered, and time in the kernel, are in the weights.
void Recording::weigh(LiveThread& thread, size_t first_sample) {
  uint64_t spans = 0;
  for (size_t n = first_sample; n < samples_.size(); n++) spans += samples_[n].span_ns;
  if (thread.state->interrupt != inproc::Interrupt::kNone) thread.event_ns = std::max(thread.event_ns, inproc::event_ns(*thread.state));
  StoredThread& row = row_of(thread);
  const uint64_t total = thread.event_ns - std::min(thread.event_ns, thread.weighed_ns);
  const bool is_wall = options_.mode == Mode::kWall;
  row.cpu_ns += is_wall ? 0 : total;
  if (!spans) {
    // Carried by the next samples; without any, it is told as a loss.
    row.cpu_ns -= is_wall ? 0 : total;
    if (thread.end_ticks && !is_wall) {
      row.cpu_ns += total;
      counts_.unweighed_ns += total;
      thread.weighed_ns = thread.event_ns;
    }
    return;
  }
  for (size_t n = first_sample; n < samples_.size(); n++) {
    StoredSample& sample = samples_[n];
    const auto share = static_cast<unsigned __int128>(total) * sample.span_ns / spans;
    sample.weight_ns = is_wall ? sample.span_ns : static_cast<int64_t>(share);
  }
  thread.weighed_ns = thread.event_ns;
}

void Recording::drop_oldest_sample() {
  threads_[samples_.front().thread].kept_samples--;
  samples_.pop_front();
  bytes_ -= sizeof(StoredSample);
}

void Recording::store(StoredThread& row, const cprof_record& record) {
  if (make_room(sizeof record)) {
    row.records.push_back(record);
    counts_.written++;
    return;
  }
  counts_.lost++;
  if (options_.overflow == Overflow::kDrop || row.records.empty()) return;
  row.records.pop_front();
  row.records.push_back(record);
}

bool Recording::drain_scopes(LiveThread& thread) {
  inproc::ThreadState& state = *thread.state;
  const cprof_thread& scopes = state.scopes;
  const uint64_t lost = __atomic_load_n(&scopes.lost, __ATOMIC_RELAXED) + state.scopes_unringed.load(std::memory_order_relaxed);
  counts_.lost += lost - thread.lost_scopes_seen;
  thread.lost_scopes_seen = lost;
  const uint64_t head = __atomic_load_n(&scopes.head, __ATOMIC_ACQUIRE);
  uint64_t tail = state.scopes_tail.load(std::memory_order_relaxed);
  if (head == tail) return false;
  const uint64_t size = scopes.mask + 1;
  const bool overwrites = options_.overflow == Overflow::kOverwrite;
  const bool is_busy = head - tail > size / 4;
  StoredThread& row = row_of(thread);
  while (tail < head) {
    const uint64_t first = head - tail > size ? head - size : tail;
    counts_.lost += first - tail;
    const uint64_t count = std::min(head - first, kBatch);
    batch_.resize(count);
    for (uint64_t n = 0; n < count; n++) {
      const cprof_record& from = scopes.ring[(first + n) & scopes.mask];
      batch_[n] = {__atomic_load_n(&from.start, __ATOMIC_ACQUIRE), __atomic_load_n(&from.end, __ATOMIC_ACQUIRE),
                   __atomic_load_n(&from.word, __ATOMIC_ACQUIRE)};
    }
    // The writer may have gone round meanwhile: what it has reached, and the one that it may be writing, is not ours.
    const uint64_t now = __atomic_load_n(&scopes.head, __ATOMIC_RELAXED);
    const uint64_t valid_from = overwrites && now >= size ? now - size + 1 : 0;
    const uint64_t torn = valid_from > first ? std::min(valid_from - first, count) : 0;
    counts_.lost += torn;
    for (uint64_t n = torn; n < count; n++) {
      if (spikes_) spikes_->see(batch_[n], thread.row);
      store(row, batch_[n]);
    }
    tail = first + count;
    state.scopes_tail.store(tail, std::memory_order_release);
  }
  return is_busy;
}

bool Recording::drain(LiveThread& thread, const ModuleTracker& modules) {
  const bool many_samples = drain_samples(thread, modules);
  const bool many_scopes = drain_scopes(thread);
  drop_unused_stacks();
  if (thread.row != UINT32_MAX) {
    threads_[thread.row].name = thread.name();
    threads_[thread.row].end_ticks = thread.end_ticks;
    threads_[thread.row].last_look = look_;
  }
  return many_samples || many_scopes;
}

uint64_t Recording::cpu_ns() const {
  uint64_t total = forgotten_cpu_ns_;
  for (const StoredThread& thread : threads_) total += thread.cpu_ns;
  return total;
}

void Recording::forget_before(uint64_t ticks) {
  while (!samples_.empty() && samples_.front().ticks < ticks) drop_oldest_sample();
  for (StoredThread& thread : threads_) {
    for (; !thread.records.empty() && time_of(thread.records.front()) < ticks; bytes_ -= sizeof(cprof_record)) thread.records.pop_front();
  }
  forget_threads();
}

// Those that were not drained since the last time are gone from the registry: nothing will be put in their rows again.
void Recording::forget_threads() {
  for (uint32_t row = 0; row < threads_.size(); row++) {
    StoredThread& thread = threads_[row];
    if (!thread.tid || thread.last_look == look_ || thread.kept_samples || !thread.records.empty()) continue;
    forgotten_cpu_ns_ += thread.cpu_ns;
    thread = {};
    bytes_ -= sizeof(StoredThread);
    free_rows_.push_back(row);
  }
  look_++;
}

// Now and then, where samples are dropped for newer ones.
void Recording::drop_unused_stacks() {
  if (options_.overflow == Overflow::kDrop && !options_.keep_ns) return;
  if (stack_bytes_ < kFewStackBytes || stack_bytes_ < 2 * kept_stack_bytes_) return;
  const auto stacks = std::exchange(stacks_, {});
  const auto frames = std::exchange(frames_, {});
  stack_ids_.clear();
  bytes_ -= std::exchange(stack_bytes_, 0);
  std::vector<uint32_t> renamed(stacks.size(), UINT32_MAX);
  for (StoredSample& sample : samples_) {
    uint32_t& id = renamed[sample.stack];
    if (id == UINT32_MAX) id = intern_stack({frames.data() + stacks[sample.stack].first, stacks[sample.stack].count});
    sample.stack = id;
  }
  kept_stack_bytes_ = stack_bytes_;
}

void Recording::note_open_scopes(const LiveThread& thread) {
  if (thread.row == UINT32_MAX && (!thread.state->scopes.open || !thread.state->scopes.depth)) return;
  StoredThread& row = row_of(const_cast<LiveThread&>(thread));
  row.open.clear();
  const cprof_thread& scopes = thread.state->scopes;
  const uint32_t depth = __atomic_load_n(&scopes.depth, __ATOMIC_RELAXED);
  for (uint32_t n = 0; n < depth && !thread.end_ticks; n++) {
    const uint64_t start = __atomic_load_n(&scopes.open[n].start, __ATOMIC_RELAXED);
    const uint64_t word = __atomic_load_n(&scopes.open[n].word, __ATOMIC_RELAXED);
    if (start && (word >> 32 & 0xfff) == n) row.open.push_back({start, 0, word});
  }
}

}  // namespace cprof::embed
