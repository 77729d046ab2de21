#include "collect/bpf/process_book.h"

#include <gtest/gtest.h>

#include "collect/bpf/fake_maps_for_tests.h"

namespace cprof::collect {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

event::Mmap mmap_of(int32_t pid, uint64_t start, uint64_t length, uint64_t inode, uint64_t time_ns = 1) {
  event::Mmap mmap;
  mmap.time_ns = time_ns;
  mmap.task = {pid, pid};
  mmap.start = start;
  mmap.length = length;
  mmap.file_offset = 0x1000;
  mmap.protection = 5;
  mmap.file = {8, 1, inode, 0};
  mmap.path = inode ? "/no/such/file" : "//anon";
  return mmap;
}

class ProcessBookTest : public testing::Test {
 protected:
  std::vector<sampler_mapping> told(int32_t pid) {
    auto it = maps.processes.find(pid);
    if (it == maps.processes.end()) return {};
    auto from = maps.mappings().begin() + it->second.first;
    return {from, from + it->second.count};
  }
  FakeMaps maps;
  Diagnostics diagnostics;
  ModuleBook modules{maps, diagnostics};
  ProcessBook book{maps, modules, false, diagnostics};
};

TEST_F(ProcessBookTest, TellsMappingsInOrderWithTheirModule) {
  book.apply(mmap_of(7, 0x9000, 0x1000, 0));
  book.apply(mmap_of(7, 0x5000, 0x2000, 42));
  EXPECT_TRUE(maps.processes.empty()) << "nothing before publish()";
  book.publish(5);
  auto mappings = told(7);
  ASSERT_EQ(mappings.size(), 2u);
  EXPECT_EQ(mappings[0].start, 0x5000u);
  EXPECT_EQ(mappings[0].end, 0x7000u);
  EXPECT_EQ(mappings[0].bias, 0x4000u) << "address minus file offset";
  EXPECT_EQ(mappings[0].module, maps.files[42]);
  EXPECT_EQ(mappings[1].module, 0u) << "no file";
  EXPECT_EQ(maps.processes[7].seen_ns, 5u);
}

TEST_F(ProcessBookTest, ChangesGoToAnotherPlaceAndCount) {
  book.apply(mmap_of(7, 0x5000, 0x2000, 42));
  book.publish(5);
  sampler_process before = maps.processes[7];
  book.apply(mmap_of(7, 0x9000, 0x1000, 43));
  book.publish(6);
  EXPECT_NE(maps.processes[7].first, before.first) << "readers may still be in the old place";
  EXPECT_NE(maps.processes[7].epoch, before.epoch);
  EXPECT_EQ(maps.processes[7].count, 2u);
  EXPECT_EQ(maps.mappings()[before.first].start, 0x5000u);
}

TEST_F(ProcessBookTest, SameMappingsAgainOnlyRenewTheTime) {
  book.apply(mmap_of(7, 0x5000, 0x2000, 42));
  book.publish(5);
  sampler_process before = maps.processes[7];
  book.apply(mmap_of(7, 0x5000, 0x2000, 42));
  book.publish(6);
  EXPECT_EQ(maps.processes[7].first, before.first);
  EXPECT_EQ(maps.processes[7].epoch, before.epoch);
  EXPECT_EQ(maps.processes[7].seen_ns, 6u);
}

TEST_F(ProcessBookTest, AChildHasItsParentsMappings) {
  book.apply(mmap_of(7, 0x5000, 0x2000, 42));
  book.apply(event::Fork{.time_ns = 2, .child = {8, 8}, .parent = {7, 7}});
  book.publish(5);
  EXPECT_EQ(told(8).size(), 1u);
  book.apply(event::Fork{.time_ns = 6, .child = {8, 9}, .parent = {8, 8}});
  book.publish(7);
  EXPECT_FALSE(maps.processes.contains(9)) << "a thread is no process";
}

TEST_F(ProcessBookTest, ExecReplacesAndIsToldUntilTheKernelMustBelieveIt) {
  book.apply(mmap_of(7, 0x5000, 0x2000, 42));
  book.publish(5);
  book.apply(event::Comm{.time_ns = 10, .task = {7, 7}, .name = "next", .exec = true});
  book.apply(mmap_of(7, 0x8000, 0x2000, 43, 11));
  book.publish(12);
  ASSERT_EQ(told(7).size(), 1u);
  EXPECT_EQ(told(7)[0].start, 0x8000u);
  EXPECT_TRUE(book.is_behind()) << "the program's own exec mark may be later than this";
  book.publish(10 + kSecond);
  EXPECT_EQ(maps.processes[7].seen_ns, 10 + kSecond);
  EXPECT_FALSE(book.is_behind());
}

TEST_F(ProcessBookTest, AnEndedProcessIsForgottenAndItsPlaceUsedAgainLater) {
  book.apply(mmap_of(7, 0x5000, 0x2000, 42));
  book.publish(5);
  uint32_t place = maps.processes[7].first;
  book.apply(event::Exit{.time_ns = 6, .task = {7, 7}});
  EXPECT_FALSE(maps.processes.contains(7));
  book.apply(mmap_of(10, 0x5000, 0x2000, 42, 7));
  book.publish(8);
  EXPECT_NE(maps.processes[10].first, place) << "a program may still be reading there";
  book.publish(6 + 2 * MappingRanges::kGraceNs);
  book.apply(mmap_of(11, 0x5000, 0x2000, 42, 7 + 2 * kSecond));
  book.publish(8 + 2 * kSecond);
  EXPECT_EQ(maps.processes[11].first, place);
}

TEST_F(ProcessBookTest, FramesAreDoubtedWhereOtherCodeWasMappedSince) {
  book.apply(mmap_of(7, 0x5000, 0x2000, 42));
  book.apply(mmap_of(7, 0x9000, 0x2000, 43));
  book.publish(5);
  book.apply(mmap_of(7, 0x9800, 0x1000, 44, 10));
  const uint64_t frames[] = {0x5010, 0x9010, 0x9810, 0x5020};
  EXPECT_EQ(book.believable(7, 5, 20, frames), 2u);
  EXPECT_EQ(book.believable(7, 5, 9, frames), 4u) << "walked before the change";
  EXPECT_EQ(book.believable(7, 12, 20, frames), 4u) << "walked by what is there now";
  EXPECT_EQ(book.believable(8, 5, 20, frames), 4u);
}

TEST_F(ProcessBookTest, FramesAreBelievedWhereTheSameCodeWasMappedAgain) {
  book.apply(mmap_of(7, 0x5000, 0x2000, 42));
  event::Mmap jit = mmap_of(7, 0x100000, 0x2000, 0);
  jit.file = {};
  jit.path = "//anon";
  book.apply(jit);
  book.publish(5);
  book.apply(mmap_of(7, 0x5000, 0x3000, 42, 10));
  jit.length = 0x8000;
  jit.time_ns = 10;
  book.apply(jit);
  const uint64_t frames[] = {0x100010, 0x5010};
  EXPECT_EQ(book.believable(7, 5, 20, frames), 2u);
}

TEST_F(ProcessBookTest, WhatDoesNotFitIsSaid) {
  maps.refuses_processes = true;
  book.apply(mmap_of(7, 0x5000, 0x2000, 42));
  book.publish(5);
  EXPECT_EQ(diagnostics.count("bpf_processes_full"), 1u);
  maps.refuses_processes = false;
  for (uint32_t i = 0; i < 5000; i++) book.apply(mmap_of(8, 0x100000 + i * 0x2000, 0x1000, 0));
  book.publish(6);
  EXPECT_EQ(told(8).size(), 4095u);
  EXPECT_EQ(diagnostics.count("bpf_mappings_cut"), 905u);
}

TEST_F(ProcessBookTest, WithTooManyMappingsThoseOfFilesStay) {
  for (uint32_t i = 0; i < 5000; i++) book.apply(mmap_of(8, 0x100000 + i * 0x2000, 0x1000, 0));
  book.apply(mmap_of(8, 0x7f0000000000, 0x2000, 42));
  book.publish(6);
  ASSERT_EQ(told(8).size(), 4095u);
  EXPECT_EQ(told(8).back().start, 0x7f0000000000u);
  EXPECT_EQ(told(8).back().module, maps.files[42]);
}

TEST_F(ProcessBookTest, AProcessThatMapsAllTheTimeIsToldNowAndThen) {
  for (uint32_t i = 0; i < 5000; i++) book.apply(mmap_of(8, 0x100000 + i * 0x2000, 0x1000, 0));
  book.publish(6);
  const uint32_t epoch = maps.processes[8].epoch;
  for (uint64_t time = 7; time < 50; time++) {
    book.apply(mmap_of(8, 0x7f0000000000 + time * 0x2000, 0x1000, 42, time));
    book.publish(time);
  }
  EXPECT_EQ(maps.processes[8].epoch, epoch);
  EXPECT_FALSE(book.is_behind()) << "it is not what the next publish() tells";
  book.publish(kSecond);
  EXPECT_EQ(maps.processes[8].epoch, epoch + 1);
  EXPECT_EQ(diagnostics.count("bpf_mappings_cut"), 948u) << "of its most, not of each time";
  book.apply(event::Comm{.time_ns = kSecond + 1, .task = {8, 8}, .name = "next", .exec = true});
  book.apply(mmap_of(8, 0x8000, 0x2000, 43, kSecond + 2));
  book.publish(kSecond + 3);
  EXPECT_EQ(told(8).size(), 1u) << "another program is told at once";
}

TEST_F(ProcessBookTest, AFileThatCannotBeOpenedIsTriedAgainForAnotherProcess) {
  book.apply(mmap_of(1'000'001, 0x5000, 0x2000, 42));
  book.publish(5);
  uint32_t module = maps.files[42];
  book.make_table(module, 1'000'001);
  EXPECT_EQ(maps.modules()[module].state, SAMPLER_MODULE_NO_TABLE);
  EXPECT_EQ(diagnostics.count("bpf_modules_without_table"), 1u);
  book.apply(mmap_of(1'000'002, 0x5000, 0x2000, 42));
  book.publish(6);
  EXPECT_EQ(maps.modules()[module].state, SAMPLER_MODULE_UNKNOWN);
}

TEST(MappingRanges, GivesDisjointRangesAndRunsOut) {
  MappingRanges ranges(64);
  auto a = ranges.take(5), b = ranges.take(33), c = ranges.take(32);
  ASSERT_TRUE(a && c);
  EXPECT_FALSE(b) << "33 take 64";
  EXPECT_GE(a->size, 5u);
  EXPECT_GE(c->first, a->first + a->size);
  EXPECT_FALSE(ranges.take(32));
  EXPECT_FALSE(ranges.take(5000)) << "more than the programs search";
  ranges.give_back(*c, 100);
  ranges.reclaim(101);
  EXPECT_FALSE(ranges.take(32));
  ranges.reclaim(101 + MappingRanges::kGraceNs);
  EXPECT_TRUE(ranges.take(32));
}

}  // namespace
}  // namespace cprof::collect
