#include "space/tracker.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace cprof::space {
namespace {

event::Mmap mmap_of(int32_t pid, uint64_t start, uint64_t length, std::string_view path, uint64_t offset = 0) {
  event::Mmap m;
  m.task = {pid, pid};
  m.start = start;
  m.length = length;
  m.file_offset = offset;
  m.protection = PROT_READ | PROT_EXEC;
  m.path = path;
  return m;
}

std::string path_at(Tracker& tracker, int32_t pid, uint64_t address) {
  const MappingPtr* m = tracker.process(pid, 0).maps.find(address);
  return m ? (*m)->path : "";
}

TEST(Tracker, ALaterMappingReplacesWhatItOverlaps) {
  Tracker t;
  t.apply(mmap_of(1, 0x1000, 0x9000, "/a"));
  t.apply(mmap_of(1, 0x3000, 0x1000, "/b"));
  EXPECT_EQ(path_at(t, 1, 0x2fff), "/a");
  EXPECT_EQ(path_at(t, 1, 0x3000), "/b");
  EXPECT_EQ(path_at(t, 1, 0x4000), "/a");
  EXPECT_EQ((*t.process(1, 0).maps.find(0x4000))->file_offset, 0x3000u);
  t.apply(mmap_of(1, 0x0, 0x100000, "/c"));
  EXPECT_EQ(t.process(1, 0).maps.size(), 1u);
  EXPECT_EQ(path_at(t, 1, 0x100000), "");
}

TEST(Tracker, AnonymousCodeOverAFilesTextRemembersIt) {
  Tracker t;
  t.apply(mmap_of(1, 0x1000, 0x9000, "/a"));
  t.apply(mmap_of(1, 0x3000, 0x1000, "//anon"));
  t.apply(mmap_of(1, 0x3000, 0x1000, "//anon"));
  t.apply(mmap_of(1, 0x9000, 0x9000, "//anon"));
  const Mapping& inside = **t.process(1, 0).maps.find(0x3000);
  ASSERT_TRUE(inside.may_copy);
  EXPECT_EQ(inside.may_copy->path, "/a");
  EXPECT_FALSE((*t.process(1, 0).maps.find(0x9000))->may_copy) << "it reaches beyond the file";
}

TEST(Tracker, EmptyAndWrappingMappingsAreIgnored) {
  Tracker t;
  t.apply(mmap_of(1, 0x1000, 0, "/a"));
  t.apply(mmap_of(1, ~0ull - 10, 0x1000, "/a"));
  EXPECT_TRUE(t.process(1, 0).maps.empty());
}

TEST(Tracker, AForkInheritsMappingsAndNameThenGoesItsOwnWay) {
  Tracker t;
  t.apply(mmap_of(1, 0x1000, 0x1000, "/a"));
  t.apply(event::Comm{1, {1, 1}, "parent"});
  t.apply(event::Fork{2, {2, 2}, {1, 1}});
  EXPECT_EQ(path_at(t, 2, 0x1000), "/a");
  EXPECT_EQ(t.process(2, 3).name, "parent");
  t.apply(event::Comm{4, {2, 2}, "child", true});
  EXPECT_EQ(path_at(t, 2, 0x1000), "");
  EXPECT_NE(t.process(2, 5).image_before_exec.find(0x1000), nullptr);
  EXPECT_EQ(path_at(t, 1, 0x1000), "/a");
}

TEST(Tracker, AThreadInheritsItsParentsNameUntilRenamed) {
  Tracker t;
  t.apply(event::Comm{1, {1, 1}, "server"});
  t.apply(event::Fork{2, {1, 7}, {1, 1}});
  EXPECT_EQ(t.thread({1, 7}, 3).name, "server");
  t.apply(event::Comm{4, {1, 7}, "worker"});
  EXPECT_EQ(t.thread({1, 7}, 5).name, "worker");
  EXPECT_EQ(t.process(1, 5).name, "server");
}

TEST(Tracker, ARenameOfTheMainThreadRenamesTheProcess) {
  Tracker t;
  t.apply(event::Comm{1, {1, 1}, "zygote"});
  t.apply(event::Fork{2, {2, 2}, {1, 1}});
  t.apply(event::Comm{3, {2, 2}, "app"});
  EXPECT_EQ(t.process(2, 4).name, "app");
  EXPECT_EQ(t.process(1, 4).name, "zygote");
}

TEST(Tracker, TheProcessOutlivesItsMainThread) {
  Tracker t;
  t.apply(event::Comm{1, {1, 1}, "app"});
  t.apply(event::Fork{2, {1, 5}, {1, 1}});
  t.apply(event::Exit{3, {1, 1}});
  EXPECT_EQ(t.process(1, 4).end_ns, 0u);
  t.apply(event::Exit{5, {1, 5}});
  EXPECT_EQ(t.process(1, 6).end_ns, 5u);
}

TEST(Tracker, AReusedPidIsANewProcess) {
  Tracker t;
  t.apply(mmap_of(100, 0x1000, 0x1000, "/a"));
  Process& first = t.process(100, 1);
  t.apply(event::Exit{6, {100, 100}});
  EXPECT_EQ(&t.process(100, 6), &first) << "samples in the exit path still belong to it";
  t.apply(event::Fork{7, {100, 100}, {1, 1}});
  EXPECT_NE(&t.process(100, 8), &first);
  EXPECT_EQ(path_at(t, 100, 0x1000), "");
  EXPECT_NE(first.maps.find(0x1000), nullptr);
}

TEST(Tracker, AReusedTidIsANewThread) {
  Tracker t;
  t.apply(event::Fork{1, {1, 9}, {1, 1}});
  t.apply(event::Comm{2, {1, 9}, "old"});
  t.apply(event::Exit{3, {1, 9}});
  t.apply(event::Fork{4, {1, 9}, {1, 1}});
  EXPECT_EQ(t.thread({1, 9}, 5).start_ns, 4u);
  EXPECT_EQ(t.thread({1, 9}, 5).end_ns, 0u);
}

TEST(Tracker, KernelMappingsBelongToNoProcess) {
  Tracker t;
  t.apply(mmap_of(-1, 0xffffffff81000000, 0x1000000, "[kernel.kallsyms]_text"));
  EXPECT_TRUE(t.all().empty());
  EXPECT_NE(t.kernel().find(0xffffffff81000010), nullptr);
}

TEST(Tracker, WhatEndedLongAgoCanBeForgotten) {
  Tracker tracker;
  tracker.apply(event::Fork{1, {7, 7}, {1, 1}});
  tracker.apply(event::Fork{2, {7, 8}, {7, 7}});
  tracker.apply(event::Fork{3, {9, 9}, {7, 7}});
  tracker.apply(event::Exit{10, {7, 8}});
  tracker.apply(event::Exit{20, {9, 9}});
  uint32_t serial = tracker.process(7, 20).serial;
  std::vector<int32_t> gone;
  auto note = [&](const Thread& t) { gone.push_back(t.tid); };
  tracker.forget_ended(10, note);
  EXPECT_TRUE(gone.empty());
  tracker.forget_ended(11, note);
  EXPECT_EQ(gone, (std::vector<int32_t>{8}));
  tracker.forget_ended(21, note);
  EXPECT_EQ(gone, (std::vector<int32_t>{8, 9}));
  EXPECT_EQ(tracker.process(7, 30).serial, serial) << "the living stay";
  Process& again = tracker.process(9, 30);
  EXPECT_EQ(again.start_ns, 30u);
  for (const auto& p : tracker.all()) EXPECT_TRUE(p.get() == &again || p->serial != again.serial) << "serials are unique";
}

}  // namespace
}  // namespace cprof::space
