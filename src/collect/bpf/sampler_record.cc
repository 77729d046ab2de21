#include "collect/bpf/sampler_record.h"

#include <array>
#include <cstddef>

namespace cprof::collect {
namespace {

// DWARF's numbers of the registers that a snapshot has, in the order of perf's: ax bx cx dx si di bp sp ip, r8 to r15.
constexpr std::array<uint8_t, 17> kDwarfByPerf = {0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr uint64_t kPerfMask = 0x1ff | uint64_t{0xff} << 16;
constexpr uint64_t kAbi64 = 2;  // PERF_SAMPLE_REGS_ABI_64
constexpr size_t kStackHead = offsetof(sampler_stack, addresses);
constexpr size_t kSnapshotHead = offsetof(sampler_snapshot, stack);

static_assert(static_cast<int>(event::WalkEnd::kUnsupportedAbi) == SAMPLER_END_UNSUPPORTED_ABI);

template <typename T>
const T* as(std::span<const std::byte> record, size_t least = sizeof(T)) {
  return record.size() >= least ? reinterpret_cast<const T*>(record.data()) : nullptr;
}

event::Task task_of(const sampler_header& header) {
  return {static_cast<int32_t>(header.pid), static_cast<int32_t>(header.tid)};
}

event::Sample sample_of(const sampler_sample& from) {
  event::Sample sample;
  sample.time_ns = from.header.time_ns;
  sample.task = task_of(from.header);
  sample.cpu = from.header.cpu;
  sample.metric = from.metric;
  sample.period = from.period;
  sample.ip = from.ip;
  sample.in_kernel = from.flags & SAMPLER_IN_KERNEL;
  sample.stack_id = from.header.stack;
  return sample;
}

}  // namespace

const sampler_header* header_of(std::span<const std::byte> record) { return as<sampler_header>(record); }

uint64_t seen_ns_of_stack(std::span<const std::byte> record) {
  const auto* stack = as<sampler_stack>(record, kStackHead);
  return stack ? stack->seen_ns : 0;
}

bool SamplerRecordDecoder::decode(std::span<const std::byte> record, event::Event& event) {
  const sampler_header* header = header_of(record);
  if (!header) return false;
  switch (header->type) {
    case SAMPLER_SAMPLE: return decode_sample(record, event);
    case SAMPLER_STACK: return decode_stack(record, event);
    case SAMPLER_SNAPSHOT: return decode_snapshot(record, event);
    case SAMPLER_SWITCH_OUT:
    case SAMPLER_SWITCH_IN: return decode_switch(record, event);
    default: return false;
  }
}

bool SamplerRecordDecoder::decode_sample(std::span<const std::byte> record, event::Event& event) {
  const auto* from = as<sampler_sample>(record);
  if (!from) return false;
  event = sample_of(*from);
  return true;
}

bool SamplerRecordDecoder::decode_stack(std::span<const std::byte> record, event::Event& event) {
  const auto* from = as<sampler_stack>(record, kStackHead);
  if (!from || from->user > SAMPLER_MAX_DEPTH || from->kernel > SAMPLER_MAX_KERNEL || from->end > SAMPLER_END_UNSUPPORTED_ABI)
    return false;
  if (record.size() < kStackHead + (from->user + from->kernel) * sizeof(uint64_t)) return false;
  event::StackDef stack;
  stack.time_ns = from->header.time_ns;
  stack.task = task_of(from->header);
  stack.id = from->header.stack;
  stack.user_chain = {from->addresses, from->user};
  stack.kernel_chain = {from->addresses + from->user, from->kernel};
  stack.user_end = static_cast<event::WalkEnd>(from->end);
  event = stack;
  return true;
}

bool SamplerRecordDecoder::decode_snapshot(std::span<const std::byte> record, event::Event& event) {
  const auto* from = as<sampler_snapshot>(record, kSnapshotHead);
  if (!from || from->kernel > SAMPLER_MAX_KERNEL || record.size() < kSnapshotHead + from->stack_bytes) return false;
  event::Sample sample = sample_of(from->sample);
  sample.kernel_chain = {from->addresses, from->kernel};
  registers_.clear();
  for (uint8_t dwarf : kDwarfByPerf) registers_.push_back(from->registers[dwarf]);
  event::Snapshot snapshot;
  snapshot.registers = {kAbi64, kPerfMask, registers_};
  snapshot.stack = std::as_bytes(std::span(from->stack, from->stack_bytes));
  snapshot.requested_bytes = SAMPLER_SNAPSHOT_BYTES;
  snapshot.is_full = from->stack_bytes + 1024 > SAMPLER_SNAPSHOT_BYTES;
  sample.snapshot = snapshot;
  event = sample;
  return true;
}

bool SamplerRecordDecoder::decode_switch(std::span<const std::byte> record, event::Event& event) {
  const auto* from = as<sampler_switch>(record);
  if (!from) return false;
  if (from->header.type == SAMPLER_SWITCH_OUT)
    event = event::SwitchOut{from->header.time_ns, task_of(from->header), from->header.cpu,
                             (from->flags & SAMPLER_PREEMPTED) != 0, from->header.stack,
                             (from->flags & SAMPLER_UNINTERRUPTIBLE) != 0};
  else
    event = event::SwitchIn{from->header.time_ns, task_of(from->header), from->header.cpu, from->woken_ns,
                            {static_cast<int32_t>(from->waker_pid), static_cast<int32_t>(from->waker_tid)}};
  return true;
}

}  // namespace cprof::collect
