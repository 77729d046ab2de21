// Reading the rings. A pass looks at every head once and takes what is there in batches, ring by ring, leaving the bytes
// in place. What is older than the start of the pass before can be delivered: whatever was stamped earlier was visible to
// this pass, except in a ring that is not yet read to its head, whose last time read limits the bound. Records go to the
// sink in time order over all rings; a ring's room is given back only up to its first undelivered record.
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "collect/perf/cpu_list.h"
#include "collect/perf/perf_collector.h"

namespace cprof::collect {
namespace {

constexpr size_t kBatch = 256;  // records per ring and batch
constexpr size_t kWorthwhile = 64;
constexpr uint64_t kMostBackoffNs = 20'000'000;
constexpr uint64_t kLeastBackoffNs = 100'000;

}  // namespace

size_t PerfCollector::read_batch() {
  size_t count = 0;
  std::vector<CpuRing>& rings = events_->rings();
  for (uint32_t index = 0; index < rings.size(); index++) {
    CpuRing& ring = rings[index];
    if (ring.retired) continue;
    for (size_t taken = 0; taken < kBatch; taken++) {
      auto record = ring.ring.next();
      if (!record) break;
      ring.last_read_ns = decoder_.time_of_record(*record);
      sorter_.push(ring.last_read_ns, *record, index);
      if (options_.off_cpu) note_switch(index, *record, ring.last_read_ns);
      bytes_read_ += record->size();
      count++;
    }
  }
  return count;
}

void PerfCollector::note_switch(size_t ring, std::span<const std::byte> record, uint64_t time_ns) {
  perf_event_header header;
  memcpy(&header, record.data(), sizeof(header));
  const bool is_switch = header.type == PERF_RECORD_SWITCH || header.type == PERF_RECORD_SWITCH_CPU_WIDE;
  if (is_switch && header.misc & PERF_RECORD_MISC_SWITCH_OUT) switch_rate_.note(ring, time_ns);
}

uint64_t PerfCollector::safe_bound(bool everything) const {
  uint64_t bound = everything ? UINT64_MAX : last_pass_ns_;
  for (const CpuRing& ring : events_->rings())
    if (!ring.retired && !ring.ring.drained()) bound = std::min(bound, ring.last_read_ns);
  return bound;
}

Result<size_t> PerfCollector::pass(bool everything) {
  uint64_t now = monotonic_ns();
  for (CpuRing& ring : events_->rings())
    if (!ring.retired) ring.ring.look_at_head();
  size_t count = 0;
  uint64_t bound = 0;
  for (size_t read = 1; read > 0;) {
    read = read_batch();
    count += read;
    if (options_.off_cpu && !everything) TRY(apply_switch_period());
    bound = safe_bound(everything);
    TRY(deliver(bound));
    release_rings();
  }
  last_pass_ns_ = now;
  retire_rings();
  if (uint64_t late = sorter_.late(); late > reported_late_) {
    diagnostics_.add("records_late", Severity::kInfo, "records that came after later ones had been delivered",
                     late - reported_late_);
    reported_late_ = late;
  }
  TRY(sink_->on_round(std::min(bound, now)));
  return count;
}

Result<void> PerfCollector::deliver(uint64_t until_ns) {
  return sorter_.deliver(until_ns, [this](const event::RecordSorter::Item& item) { return deliver_record(item); });
}

Result<void> PerfCollector::deliver_record(const event::RecordSorter::Item& item) {
  switch (decoder_.decode(item.record, event_)) {
    case event::DecodeOutcome::kEvent: break;
    case event::DecodeOutcome::kIgnored: return {};
    case event::DecodeOutcome::kUnknown:
      diagnostics_.add("records_unknown", Severity::kInfo, "records of types that this version does not know");
      return {};
    case event::DecodeOutcome::kNoEvent:
    case event::DecodeOutcome::kMalformed:
      diagnostics_.add("records_malformed", Severity::kDataLoss, "records from the kernel that make no sense");
      return {};
  }
  if (const auto* lost = std::get_if<event::Lost>(&event_)) events_->rings()[item.source].lost_reported += lost->count;
  note_event(event_);
  auto* sample = std::get_if<event::Sample>(&event_);
  if (sample && !decoder_.group_values().empty()) return deliver_group(*sample);
  return sink_->on_event(event_);
}

Result<void> PerfCollector::deliver_group(event::Sample& sample) {
  auto others = groups_.expand(sample, decoder_.group_values());
  TRY(sink_->on_event(event_));
  for (const event::Sample& other : others) TRY(sink_->on_event(other));
  return {};
}

// The kernel tells a loss with the next record that fits; at the end of a recording there may be none.
Result<void> PerfCollector::tell_untold_losses(uint64_t now_ns) {
  for (const CpuRing& ring : events_->rings()) {
    uint64_t untold = events_->lost_untold(ring);
    if (untold == 0) continue;
    event_ = event::Lost{.time_ns = now_ns, .cpu = static_cast<uint32_t>(ring.cpu), .kind = event::LostKind::kRecords,
                         .count = untold};
    note_event(event_);
    TRY(sink_->on_event(event_));
  }
  return {};
}

void PerfCollector::note_event(const event::Event& event) {
  // Losses and throttling go to the sink as events, which counts them for a live run and a replay alike.
  if (const auto* lost = std::get_if<event::Lost>(&event)) {
    lost_records_ += lost->count;
  } else if (std::holds_alternative<event::Mmap>(event)) {
    mappings_changed_ = true;
  } else if (wide_) {
    return;
  } else if (const auto* fork = std::get_if<event::Fork>(&event)) {
    live_[fork->child.tid] = fork->child.pid;
  } else if (const auto* exit = std::get_if<event::Exit>(&event)) {
    live_.erase(exit->task.tid);
    groups_.thread_ended(exit->task.tid);
  }
}

void PerfCollector::release_rings() {
  std::vector<CpuRing>& rings = events_->rings();
  for (CpuRing& ring : rings)
    if (!ring.retired) ring.keep_from = ring.ring.cursor();
  for (const event::RecordSorter::Item& item : sorter_.held()) {
    CpuRing& ring = rings[item.source];
    ring.keep_from = std::min(ring.keep_from, ring.ring.position_of(item.record.data()));
  }
  for (CpuRing& ring : rings)
    if (!ring.retired) ring.ring.release(ring.keep_from);
}

void PerfCollector::retire_rings() {
  for (CpuRing& ring : events_->rings()) {
    if (ring.retired) continue;
    if (uint64_t nonsense = ring.ring.take_nonsense_bytes())
      diagnostics_.add("ring_bytes_skipped", Severity::kDataLoss, "bytes of a ring buffer that were not records", nonsense);
    if (ring.gone && ring.keep_from == ring.ring.cursor()) events_->retire(ring);
  }
}

// Sleeps one sampling interval after a worthwhile amount of data or after news of mappings, whose files may soon be gone;
// twice as long each time there was little, 20 ms at most: waking up for each single sample costs more than the sample.
// A ring that fills up wakes sooner.
void PerfCollector::wait(int timeout_ms) {
  uint64_t wait_ns = std::min<uint64_t>(backoff_ns_, static_cast<uint64_t>(std::max(timeout_ms, 0)) * 1'000'000);
  timespec timeout{static_cast<time_t>(wait_ns / 1'000'000'000), static_cast<long>(wait_ns % 1'000'000'000)};
  std::vector<pollfd> asks;
  std::vector<CpuRing*> asked;
  for (CpuRing& ring : events_->rings()) {
    if (ring.retired || !ring.pollable) continue;
    asks.push_back({ring.owner.get(), POLLIN, 0});
    asked.push_back(&ring);
  }
  if (ppoll(asks.data(), asks.size(), &timeout, nullptr) <= 0) return;
  for (size_t i = 0; i < asks.size(); i++)
    // The task behind the owner ended; its ring lives on for the others and is looked at by the clock.
    if (asks[i].revents & (POLLHUP | POLLERR | POLLNVAL)) asked[i]->pollable = false;
}

// Once a second: which CPUs are there.
Result<void> PerfCollector::periodic_work() {
  uint64_t now = monotonic_ns();
  if (!sampling_ && now >= sampling_at_ns_) {
    events_->enable_samplers();
    sampling_ = true;
  }
  TRY(apply_stack_change());
  if (now - last_period_ns_ < kSecondNs) return {};
  last_period_ns_ = now;
  auto online = read_online_cpus(options_.online_cpus_path, options_.stat_path);
  if (!online) return {};
  if (!options_.target.cpus.empty())
    std::erase_if(*online, [&](int cpu) { return !std::ranges::binary_search(cpus_, cpu); });
  auto followed = events_->follow_cpus(*online, live_tids());
  if (!followed)
    diagnostics_.add("cpus_not_opened", Severity::kDataLoss, "CPUs that came online and could not be sampled", 1,
                     followed.error().message);
  return {};
}

void PerfCollector::hurry() { backoff_ns_ = std::clamp(interval_ns(), kLeastBackoffNs, kMostBackoffNs); }

Result<bool> PerfCollector::poll(int timeout_ms) {
  uint64_t interval = std::clamp(interval_ns(), kLeastBackoffNs, kMostBackoffNs);
  bool ended = target_ended();
  if (!ended) wait(timeout_ms);
  size_t count = TRY(pass(ended));
  if (count >= kBatch) backoff_ns_ = 0;
  else if (count >= kWorthwhile || std::exchange(mappings_changed_, false)) backoff_ns_ = interval;
  else backoff_ns_ = std::min(kMostBackoffNs, std::max(backoff_ns_, interval) * 2);
  if (ended) return false;
  TRY(periodic_work());
  return true;
}

uint64_t PerfCollector::interval_ns() const {
  return options_.freq_hz ? 1'000'000'000 / options_.freq_hz : 1'000'000;
}

}  // namespace cprof::collect
