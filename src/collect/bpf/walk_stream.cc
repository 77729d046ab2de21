// Order of reading: the rings of the programs are read first, then the side band passes over its own. What the side band
// then holds to be safe to deliver is safe for both, as anything stamped earlier had been written when the rings were read.
// Its events are held until the programs have been told what they mean for unwinding.
#include "collect/bpf/walk_stream.h"

#include <utility>
#include <variant>

namespace cprof::collect {

WalkStream::WalkStream(WalkMaps& maps, const Choices& choices, Owner& owner, Diagnostics& diagnostics)
    : maps_(maps), choices_(choices), owner_(owner), diagnostics_(diagnostics), modules_(maps, diagnostics),
      processes_(maps, modules_, choices.makes_tables, diagnostics) {}

// ---- the programs' records ----

void WalkStream::drain() {
  maps_.rings().read([this](std::span<const std::byte> record) { take_record(record); });
}

void WalkStream::take_record(std::span<const std::byte> record) {
  bytes_read_ += record.size();
  records_++;
  const sampler_header* header = header_of(record);
  if (!header) return note_malformed();
  // Counts name a stack long after it was met, when other code may lie at its addresses: it is told in its turn.
  if (header->type == SAMPLER_STACK && !choices_.is_counted) stacks_.keep(header->stack, header->time_ns, record);
  else if (header->type != SAMPLER_WANT_MODULE) sorter_.push_copy(header->time_ns, record);
  else processes_.make_table(static_cast<uint32_t>(header->stack), static_cast<int32_t>(header->pid));
}

void WalkStream::note_malformed() {
  diagnostics_.add("bpf_records_malformed", Severity::kDataLoss, "records from the BPF program that make no sense");
}

void WalkStream::repeat_stacks(uint64_t now_ns, uint64_t every_ns) {
  if (last_repeat_ns_ == 0) last_repeat_ns_ = now_ns;
  if (now_ns - last_repeat_ns_ < every_ns) return;
  last_repeat_ns_ = now_ns;
  stacks_.repeat(now_ns);
  maps_.repeat_stacks();
}

// ---- the side band's events ----

Result<void> WalkStream::begin(const event::SessionInfo& side) {
  event::SessionInfo info = side;
  owner_.describe(info);
  return sink_->begin(info);
}

Result<void> WalkStream::on_event(const event::Event& event) {
  hold(event);
  processes_.apply(event);
  return {};
}

void WalkStream::hold(const event::Event& event) {
  event::Event& held = held_.emplace_back(event);
  if (auto* mmap = std::get_if<event::Mmap>(&held)) {
    mmap->path = keep(mmap->path);
    const std::string_view build_id(reinterpret_cast<const char*>(mmap->build_id.data()), mmap->build_id.size());
    mmap->build_id = std::as_bytes(std::span(keep(build_id)));
  } else if (auto* comm = std::get_if<event::Comm>(&held)) {
    comm->name = keep(comm->name);
  } else if (auto* symbol = std::get_if<event::KernelSymbol>(&held)) {
    symbol->name = keep(symbol->name);
  }
}

Result<void> WalkStream::on_round(uint64_t time_ns) {
  processes_.publish(time_ns);
  TRY(pass_on());
  TRY(deliver(time_ns));
  return sink_->on_round(time_ns);
}

Result<void> WalkStream::finish(uint64_t end_ns) {
  TRY(pass_on());
  TRY(deliver(UINT64_MAX));
  TRY(owner_.before_finish(end_ns));
  return sink_->finish(end_ns);
}

Result<void> WalkStream::pass_on() {
  Result<void> passed;
  for (const event::Event& event : held_) {
    passed = deliver(event::time_of(event));
    if (passed) passed = sink_->on_event(event);
    if (!passed) break;
  }
  held_.clear();
  texts_.clear();
  return passed;
}

// ---- both, to the sink ----

Result<void> WalkStream::deliver(uint64_t until_ns) {
  TRY(sorter_.deliver(until_ns, [this](const event::RecordSorter::Item& item) { return deliver_record(item.record); }));
  if (!choices_.is_counted) stacks_.delivered_until(until_ns);
  return {};
}

Result<void> WalkStream::tell_stack(StackBook::Stack& kept, uint64_t time_ns) {
  if (!decoder_.decode(kept.record, stack_event_)) {
    note_malformed();
    return {};
  }
  auto& stack = std::get<event::StackDef>(stack_event_);
  stack.time_ns = time_ns;
  const size_t believable = processes_.believable(stack.task.pid, seen_ns_of_stack(kept.record), time_ns, stack.user_chain);
  if (believable < stack.user_chain.size()) {
    // The frame itself is right: only what it was unwound by was not. Its caller is in doubt.
    stack.user_chain = stack.user_chain.first(believable + 1);
    stack.user_end = event::WalkEnd::kNoMapping;
  }
  Result<void> told = sink_->on_event(stack_event_);
  stacks_.tell(kept);
  return told;
}

bool WalkStream::is_told(uint64_t id) {
  const StackBook::Stack* kept = stacks_.find(id);
  return kept && kept->is_told;
}

// Before the first event that names it.
Result<void> WalkStream::describe_stack(uint64_t& id, uint64_t time_ns) {
  if (id == 0) return {};
  StackBook::Stack* kept = stacks_.find(id);
  if (kept && !kept->is_told) TRY(tell_stack(*kept, time_ns));
  if (kept && kept->is_told) return {};
  diagnostics_.add("bpf_stacks_missing", Severity::kDataLoss, "samples whose stack did not come through the ring buffer");
  id = 0;
  return {};
}

Result<void> WalkStream::deliver_stack(std::span<const std::byte> record) {
  const sampler_header& header = *header_of(record);
  StackBook::Stack& kept = stacks_.keep(header.stack, header.time_ns, record);
  return kept.is_told ? Result<void>() : tell_stack(kept, header.time_ns);
}

Result<void> WalkStream::deliver_record(std::span<const std::byte> record) {
  const sampler_header& header = *header_of(record);
  if (header.type == SAMPLER_STACK) return deliver_stack(record);
  if (!decoder_.decode(record, event_)) {
    note_malformed();
    return {};
  }
  if (auto* sample = std::get_if<event::Sample>(&event_)) {
    if (!owner_.on_sample(*sample)) return {};
    TRY(describe_stack(sample->stack_id, sample->time_ns));
  }
  if (auto* out = std::get_if<event::SwitchOut>(&event_)) TRY(describe_stack(out->stack_id, out->time_ns));
  return sink_->on_event(event_);
}

void WalkStream::report() {
  static constexpr CounterWords kRows[] = {
      {SAMPLER_RING_FULL_STACKS, Severity::kDataLoss, "bpf_lost_stacks", "stacks lost in the kernel's ring; take fewer of them a second"},
      {SAMPLER_RING_FULL_SNAPSHOTS, Severity::kInfo, "bpf_snapshots_refused", "stacks cut because a copy of them found no room in the ring"},
      {SAMPLER_NO_RING, Severity::kDataLoss, "bpf_no_ring", "records lost because their CPU had no ring yet"},
      {SAMPLER_PROCESSES_FULL, Severity::kNotice, "bpf_processes_full", "processes beyond what the BPF program can hold; their stacks are unwound from snapshots"},
      {SAMPLER_SNAPSHOTS_OVER_BUDGET, Severity::kInfo, "bpf_snapshots_over_budget", "stacks cut because too many samples wanted a copy of their stack"},
      {SAMPLER_LOOKED_UP, Severity::kInfo, "bpf_mappings_looked_up", "times that the BPF program looked a mapping up that it had not been told of yet"},
  };
  report_counters(kRows, maps_.counters(), diagnostics_);
  if (sorter_.late())
    diagnostics_.add("records_late", Severity::kInfo, "records that came after later ones had been delivered", sorter_.late());
  modules_.report(diagnostics_);
}

}  // namespace cprof::collect
