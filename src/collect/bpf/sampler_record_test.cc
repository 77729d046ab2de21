#include "collect/bpf/sampler_record.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cprof::collect {
namespace {

template <typename T>
std::span<const std::byte> bytes_of(const T& record, size_t size = sizeof(T)) {
  return std::as_bytes(std::span(reinterpret_cast<const char*>(&record), size));
}

sampler_header header(uint32_t type, uint64_t stack = 0) { return {type, 3, 1000, 70, 71, stack}; }

TEST(SamplerRecord, Sample) {
  sampler_sample record{header(SAMPLER_SAMPLE, 0xabc), 0xffffffff81000000, 1001001, 1, SAMPLER_IN_KERNEL};
  event::Event event;
  SamplerRecordDecoder decoder;
  ASSERT_TRUE(decoder.decode(bytes_of(record), event));
  const auto& sample = std::get<event::Sample>(event);
  EXPECT_EQ(sample.time_ns, 1000u);
  EXPECT_EQ(sample.task, (event::Task{70, 71}));
  EXPECT_EQ(sample.cpu, 3u);
  EXPECT_EQ(sample.metric, 1u);
  EXPECT_EQ(sample.period, 1001001u);
  EXPECT_EQ(sample.stack_id, 0xabcu);
  EXPECT_TRUE(sample.in_kernel);
  EXPECT_FALSE(sample.snapshot);
  for (size_t size = 0; size < sizeof(record); size++) EXPECT_FALSE(decoder.decode(bytes_of(record, size), event)) << size;
}

TEST(SamplerRecord, StackHoldsUserThenKernel) {
  auto record = std::make_unique<sampler_stack>();
  record->header = header(SAMPLER_STACK, 5);
  record->user = 2;
  record->kernel = 1;
  record->end = SAMPLER_END_MAX_DEPTH;
  for (uint64_t i = 0; i < 3; i++) record->addresses[i] = 100 + i;
  size_t size = offsetof(sampler_stack, addresses) + 24;
  event::Event event;
  SamplerRecordDecoder decoder;
  ASSERT_TRUE(decoder.decode(bytes_of(*record, size), event));
  const auto& stack = std::get<event::StackDef>(event);
  EXPECT_EQ(stack.id, 5u);
  EXPECT_EQ(std::vector(stack.user_chain.begin(), stack.user_chain.end()), (std::vector<uint64_t>{100, 101}));
  EXPECT_EQ(std::vector(stack.kernel_chain.begin(), stack.kernel_chain.end()), (std::vector<uint64_t>{102}));
  EXPECT_EQ(stack.user_end, event::WalkEnd::kMaxDepth);
  EXPECT_FALSE(decoder.decode(bytes_of(*record, size - 8), event)) << "shorter than its counts say";
  record->user = 0xffffffff;
  EXPECT_FALSE(decoder.decode(bytes_of(*record, size), event));
}

TEST(SamplerRecord, SnapshotHasRegistersInPerfsOrder) {
  auto record = std::make_unique<sampler_snapshot>();
  record->sample = {header(SAMPLER_SNAPSHOT), 0x400010, 1, 0, 0};
  record->kernel = 1;
  record->addresses[0] = 77;
  record->stack_bytes = 2048;
  for (uint64_t n = 0; n < SAMPLER_REGISTERS; n++) record->registers[n] = 1000 + n;
  event::Event event;
  SamplerRecordDecoder decoder;
  size_t size = offsetof(sampler_snapshot, stack) + 2048;
  ASSERT_TRUE(decoder.decode(bytes_of(*record, size), event));
  const auto& sample = std::get<event::Sample>(event);
  ASSERT_TRUE(sample.snapshot);
  const event::Registers& registers = sample.snapshot->registers;
  EXPECT_EQ(registers.get(0), 1000u) << "ax";
  EXPECT_EQ(registers.get(1), 1003u) << "bx is DWARF's 3";
  EXPECT_EQ(registers.get(7), 1007u) << "sp";
  EXPECT_EQ(registers.get(8), 1016u) << "ip";
  EXPECT_EQ(registers.get(16), 1008u) << "r8";
  EXPECT_EQ(registers.get(23), 1015u) << "r15";
  EXPECT_FALSE(registers.get(9)) << "flags";
  EXPECT_EQ(sample.snapshot->stack.size(), 2048u);
  EXPECT_FALSE(sample.snapshot->is_full);
  EXPECT_EQ(sample.kernel_chain.size(), 1u);
  EXPECT_FALSE(decoder.decode(bytes_of(*record, size - 1), event));
}

TEST(SamplerRecord, Switches) {
  sampler_switch record{header(SAMPLER_SWITCH_OUT, 9), 0, 0, 0, SAMPLER_PREEMPTED, 0};
  event::Event event;
  SamplerRecordDecoder decoder;
  ASSERT_TRUE(decoder.decode(bytes_of(record), event));
  EXPECT_TRUE(std::get<event::SwitchOut>(event).preempted);
  EXPECT_EQ(std::get<event::SwitchOut>(event).stack_id, 9u);
  record = {header(SAMPLER_SWITCH_IN), 900, 50, 51, 0, 0};
  ASSERT_TRUE(decoder.decode(bytes_of(record), event));
  EXPECT_EQ(std::get<event::SwitchIn>(event).woken_ns, 900u);
  EXPECT_EQ(std::get<event::SwitchIn>(event).waker, (event::Task{50, 51}));
}

TEST(SamplerRecord, UnknownTypesAreRefused) {
  sampler_header unknown = header(99), wish = header(SAMPLER_WANT_MODULE, 4);
  event::Event event;
  SamplerRecordDecoder decoder;
  EXPECT_FALSE(decoder.decode(bytes_of(unknown), event));
  EXPECT_FALSE(decoder.decode(bytes_of(wish), event));
  EXPECT_FALSE(decoder.decode({}, event));
}

}  // namespace
}  // namespace cprof::collect
