#include "pipeline/pipeline.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>
#include <map>

#include "pipeline/imported_names.h"
#include "profile/builder.h"

namespace cprof::pipeline {
namespace {

event::SessionInfo session_info() {
  event::SessionInfo info;
  info.metrics = {{"cpu-clock", "nanoseconds", 1, 0, 1'000'000, 0, true}};
  info.has_switches = info.has_kernel_stacks = true;
  info.start_ns = 1;
  return info;
}

class Recording {
 public:
  explicit Recording(Options options = {}) : pipeline_(prepare(std::move(options))) {
    EXPECT_TRUE(pipeline_.begin(session_info()));
  }
  Recording& add(const event::Event& event) {
    EXPECT_TRUE(pipeline_.on_event(event));
    return *this;
  }
  Recording& sample(int32_t pid, uint64_t time, std::vector<uint64_t> user, std::vector<uint64_t> kernel = {}) {
    event::Sample s;
    s.time_ns = time;
    s.task = {pid, pid};
    s.period = 1'000'000;
    s.in_kernel = !kernel.empty();
    s.user_chain = user;
    s.kernel_chain = kernel;
    return add(s);
  }
  Recording& forget_before(uint64_t time) {
    pipeline_.forget_before(time);
    return *this;
  }
  size_t bytes_held() const { return pipeline_.bytes_held(); }
  profile::Profile finish(uint64_t end = 1000) {
    EXPECT_TRUE(pipeline_.finish(end));
    return pipeline_.take();
  }

 private:
  static Options prepare(Options options) {
    options.symbolize = false;
    return options;
  }
  Pipeline pipeline_;
};

event::Mmap mmap_of(int32_t pid, uint64_t start, std::string_view path) {
  event::Mmap m;
  m.task = {pid, pid};
  m.start = start;
  m.length = 0x1000;
  m.protection = PROT_READ | PROT_EXEC;
  m.path = path;
  return m;
}

std::vector<uint64_t> addresses_root_first(const profile::Profile& p, profile::CallSiteId site) {
  std::vector<uint64_t> result;
  for (; site.valid(); site = p.sites[site.index()].parent)
    result.insert(result.begin(), p.locations[p.sites[site.index()].location.index()].address);
  return result;
}

TEST(Pipeline, AStackIsUserRootToUserLeafThenKernelEntryToKernelLeaf) {
  auto p = Recording().sample(7, 10, {0x30000, 0x20000, 0x10000}, {0xffffffff81000020, 0xffffffff81000010}).finish();
  ASSERT_EQ(p.samples.size(), 1u);
  EXPECT_EQ(addresses_root_first(p, p.samples[0].site),
            (std::vector<uint64_t>{0x10000, 0x20000, 0x30000, 0xffffffff81000010, 0xffffffff81000020}));
  std::vector<bool> returns;
  for (const auto& location : p.locations) returns.push_back(location.is_return_address);
  EXPECT_EQ(returns, (std::vector<bool>{true, true, false, true, false}));
}

TEST(Pipeline, EqualStacksShareTheirSites) {
  Recording run;
  for (uint64_t t = 1; t <= 100; t++) run.sample(7, t, {0x30000 + t % 2, 0x20000, 0x10000});
  auto p = run.finish();
  EXPECT_EQ(p.samples.size(), 100u);
  EXPECT_EQ(p.sites.size(), 4u);
}

TEST(Pipeline, AReusedPidDoesNotGetTheDeadOnesSamples) {
  Recording run;
  run.add(event::Comm{1, {100, 100}, "a"});
  for (uint64_t t = 1; t <= 5; t++) run.sample(100, t, {0x10});
  run.add(event::Exit{6, {100, 100}});
  run.add(event::Fork{7, {100, 100}, {1, 1}}).add(event::Comm{7, {100, 100}, "b", true});
  for (uint64_t t = 8; t <= 9; t++) run.sample(100, t, {0x10});
  auto p = run.finish();
  std::map<std::string, int> counts;
  for (const auto& s : p.samples)
    counts[std::string(p.text(p.processes[p.threads[s.thread.index()].process.index()].name))]++;
  EXPECT_EQ(counts, (std::map<std::string, int>{{"a", 5}, {"b", 2}}));
}

TEST(Pipeline, AFramePointerChainEndsWhereItLeavesTheCode) {
  Recording run;
  run.add(mmap_of(7, 0x50000, "//anon"));
  run.sample(7, 10, {0x50010, 0x50020, 0x99990, 0x50030});
  run.sample(7, 11, {0x50010, 0x50020, 0});
  auto p = run.finish();
  EXPECT_EQ(addresses_root_first(p, p.samples[0].site), (std::vector<uint64_t>{0x50020, 0x50010}));
  EXPECT_EQ(p.samples[0].end, profile::StackEnd::kBadPc);
  EXPECT_EQ(p.samples[1].end, profile::StackEnd::kComplete);
}

TEST(Pipeline, ASampleWithoutAnyStackIsKept) {
  auto p = Recording().sample(7, 10, {}).finish();
  ASSERT_EQ(p.samples.size(), 1u);
  EXPECT_FALSE(p.samples[0].site.valid());
  EXPECT_EQ(p.samples[0].weight, 1'000'000);
  EXPECT_EQ(p.samples[0].end, profile::StackEnd::kNotUnwound);
}

TEST(Pipeline, SwitchRecordsBecomeIntervalsOnACpu) {
  Recording run;
  run.sample(7, 10, {0x10});
  run.add(event::SwitchOut{50, {7, 7}, 0, false}).add(event::SwitchIn{80, {7, 7}, 1}).add(event::SwitchOut{90, {7, 7}, 1, true});
  run.add(event::SwitchIn{95, {7, 7}, 1});
  auto p = run.finish(100);
  ASSERT_EQ(p.on_cpu.size(), 3u);
  EXPECT_EQ(p.on_cpu[1].start_ns, 80u);
  EXPECT_EQ(p.on_cpu[1].end_ns, 90u);
  EXPECT_TRUE(p.on_cpu[1].preempted);
  EXPECT_EQ(p.on_cpu[2].end_ns, 100u) << "still on the CPU at the end";
}

TEST(Pipeline, AClockThatGoesBackIsCountedAndNotAHugeInterval) {
  Recording run;
  run.add(event::SwitchIn{1000, {7, 7}, 0}).add(event::SwitchOut{990, {7, 7}, 0, false});
  auto p = run.finish();
  EXPECT_TRUE(p.on_cpu.empty());
  EXPECT_EQ(p.diagnostics.count("clock_went_back"), 1u);
}

TEST(Pipeline, LossesAreCountedByKind) {
  Recording run;
  run.add(event::Lost{5, 0, event::LostKind::kRecords, 7}).add(event::Lost{6, 0, event::LostKind::kSamples, 2});
  run.add(event::Throttle{7, 0, true}).add(event::Throttle{8, 0, false});
  auto p = run.finish();
  EXPECT_EQ(p.diagnostics.count("lost_records"), 7u);
  EXPECT_EQ(p.diagnostics.count("lost_samples"), 2u);
  EXPECT_EQ(p.diagnostics.count("throttled"), 1u);
}

TEST(Pipeline, HiddenKernelSymbolsAreSaidOnceAndNamesStayAway) {
  std::string path = testing::TempDir() + "/hidden_kallsyms";
  std::ofstream(path) << "0000000000000000 T a\n0000000000000000 t b\n";
  Options options;
  options.kallsyms_path = path;
  auto p = Recording(options).sample(7, 10, {0x10}, {0xffffffff81000010}).sample(7, 11, {0x10}, {0xffffffff81000020}).finish();
  EXPECT_EQ(p.samples.size(), 2u);
  EXPECT_EQ(p.diagnostics.count("kernel_symbols_hidden"), 1u);
  EXPECT_EQ(addresses_root_first(p, p.samples[0].site).back(), 0xffffffff81000010);
}

class FakeLive : public LiveAccess {
 public:
  Result<std::vector<object::MapsEntry>> read_maps(int32_t) override {
    asked++;
    object::MapsEntry entry;
    entry.start = 0x5000;
    entry.end = 0x6000;
    entry.executable = true;
    return std::vector{entry};
  }
  size_t read_memory(int32_t, uint64_t, std::span<std::byte>) override { return 0; }
  Result<std::string> read_cgroup(int32_t pid) override {
    asked_for_cgroup.push_back(pid);
    const auto found = cgroups.find(pid);
    return found == cgroups.end() ? Result<std::string>(fail("gone")) : found->second;
  }
  int asked = 0;
  std::map<int32_t, std::string> cgroups;
  std::vector<int32_t> asked_for_cgroup;
};

class Recorder : public event::EventSink {
 public:
  Result<void> begin(const event::SessionInfo&) override { return {}; }
  Result<void> on_event(const event::Event& event) override {
    order.push_back(event.index());
    if (const auto* cgroup = std::get_if<event::Cgroup>(&event)) cgroups.emplace_back(cgroup->task.pid, cgroup->path);
    return {};
  }
  Result<void> finish(uint64_t) override { return {}; }
  std::vector<size_t> order;
  std::vector<std::pair<int32_t, std::string>> cgroups;
};

TEST(Pipeline, ProcessesAreToldTheirCgroupsOnceAndWhenTheyExecute) {
  FakeLive live;
  Recorder journal;
  Options options;
  options.live = &live;
  options.journal = &journal;
  live.cgroups = {{7, "/a"}};
  Recording run(options);
  run.add(mmap_of(7, 0x50000, "//anon"));
  run.sample(7, 10, {0x50010}).sample(7, 11, {0x50010});
  run.add(event::Fork{12, {8, 8}, {7, 7}}).sample(8, 13, {0x50010});   // gone by now: where its parent is
  live.cgroups[7] = "/docker/b";
  run.add(event::Comm{14, {7, 7}, "b", true}).add(mmap_of(7, 0x50000, "//anon")).sample(7, 15, {0x50010});
  run.add(event::Fork{16, {9, 9}, {4, 4}}).sample(9, 17, {0x50010});   // nobody knows
  auto p = run.finish();
  std::map<int32_t, std::string_view> found;
  for (const auto& process : p.processes) found[process.pid] = p.text(process.cgroup);
  EXPECT_EQ(found, (std::map<int32_t, std::string_view>{{7, "/docker/b"}, {8, "/a"}, {9, ""}}));
  EXPECT_EQ(journal.cgroups, (std::vector<std::pair<int32_t, std::string>>{{7, "/a"}, {7, "/docker/b"}}));
  EXPECT_EQ(live.asked_for_cgroup, (std::vector<int32_t>{7, 8, 7, 9, 4}));
}

TEST(Pipeline, CgroupsOfARecordingAreInheritedToo) {
  Recording run;
  run.add(event::Cgroup{5, {7, 7}, "/a"}).add(event::Fork{6, {8, 8}, {7, 7}}).add(event::Cgroup{7, {7, 7}, "/b"});
  auto p = run.sample(8, 8, {0x10}).sample(7, 9, {0x10}).finish();
  EXPECT_EQ(p.text(p.processes[0].cgroup), "/a");
  EXPECT_EQ(p.text(p.processes[1].cgroup), "/b");
}

// Each has a perf map of its own, so the same address may have two names.
TEST(Pipeline, GeneratedCodeOfTwoProcessesIsNeverTheSame) {
  Recording recording;
  for (int32_t pid : {7, 8}) recording.add(mmap_of(pid, 0x10000, "//anon")).sample(pid, 10, {0x10010});
  recording.sample(7, 20, {0x10010});
  auto p = recording.finish();
  ASSERT_EQ(p.samples.size(), 3u);
  auto mapping_of = [&](const profile::Sample& s) { return p.locations[p.sites[s.site.index()].location.index()].mapping; };
  std::map<uint32_t, size_t> uses;
  for (const profile::Sample& s : p.samples) uses[mapping_of(s).value]++;
  EXPECT_EQ(uses.size(), 2u);
}

// What is never written and executed at one address lies in a file that has no name: .NET, Erlang, huge pages.
TEST(Pipeline, CodeThatCompilersKeepInFilesIsGeneratedCode) {
  for (std::string_view path : {"/memfd:doublemapper (deleted)", "/dev/zero (deleted)", "/anon_hugepage (deleted)",
                                "/SYSV00000000 (deleted)"}) {
    auto p = Recording().add(mmap_of(7, 0x10000, path)).sample(7, 10, {0x10010}).finish();
    ASSERT_EQ(p.locations.size(), 1u) << path;
    EXPECT_EQ(p.locations[0].kind, profile::FrameKind::kJit) << path;
    EXPECT_EQ(p.text(p.mappings[p.locations[0].mapping.index()].path), path);
    EXPECT_FALSE(p.diagnostics.entries().contains("modules_unreadable")) << path;
  }
}

TEST(ImportedNames, OnlyTheLinkersAreDemangled) {
  profile::ProfileBuilder builder;
  for (auto [name, system] : {std::pair{"_ZN1a1fEi", "_ZN1a1fEi"}, {"mine", "_ZN1a1gEi"}, {"main", "main"}, {"_Zrubbish", "_Zrubbish"}})
    builder.function({.name = builder.intern(name), .system_name = builder.intern(system)});
  profile::Profile p = builder.take();
  demangle_imported(p, symbolize::DemangleStyle::kNone);
  EXPECT_EQ(p.text(p.functions[0].name), "_ZN1a1fEi");
  demangle_imported(p, symbolize::DemangleStyle::kFull);
  std::vector<std::string_view> names;
  for (const profile::Function& function : p.functions) names.push_back(p.text(function.name));
  EXPECT_EQ(names, (std::vector<std::string_view>{"a::f(int)", "mine", "main", "_Zrubbish"}));
  EXPECT_EQ(p.text(p.functions[0].system_name), "_ZN1a1fEi");
}

// A kernel that began elsewhere in memory has its symbols elsewhere too.
TEST(Pipeline, SymbolsOfAnotherBootOrKernelAreNotUsed) {
  constexpr uint64_t kText = 0xffffffff81000000;
  auto name_count = [](event::SessionInfo info, uint64_t text_at, bool given) {
    std::string path = testing::TempDir() + "/some_kallsyms";
    std::ofstream(path) << "ffffffff81000000 T _text\nffffffff81000100 T f\nffffffff81000200 T end\n";
    Options options;
    options.symbolize = true;
    options.kallsyms_path = path;
    options.kallsyms_given = given;
    Pipeline pipeline(options);
    EXPECT_TRUE(pipeline.begin(info));
    event::Mmap kernel = mmap_of(-1, kText, "[kernel.kallsyms]_text");
    kernel.length = 0x100000;
    kernel.file_offset = text_at;
    event::Sample sample;
    sample.task = {7, 7};
    uint64_t chain[] = {kText + 0x110};
    sample.kernel_chain = chain;
    sample.in_kernel = true;
    EXPECT_TRUE(pipeline.on_event(kernel) && pipeline.on_event(sample) && pipeline.finish(100));
    auto p = pipeline.take();
    EXPECT_EQ(p.diagnostics.count("kernel_symbols_foreign"), p.functions.empty() ? 1u : 0u);
    return p.functions.size();
  };
  EXPECT_EQ(name_count(session_info(), kText, false), 1u);
  EXPECT_EQ(name_count(session_info(), kText + 0x2000010, false), 0u);
  EXPECT_EQ(name_count(session_info(), 0, false), 1u) << "not told";
  EXPECT_EQ(name_count(session_info(), kText + 0x2000010, true), 1u) << "who gives the file vouches for it";
  event::SessionInfo other = session_info();
  other.kernel_release = "0.1-other";
  EXPECT_EQ(name_count(other, kText, false), 0u);
  EXPECT_EQ(name_count(other, kText, true), 1u);
}

TEST(Pipeline, WhatALiveProcessWasAskedIsInTheJournalBeforeItsSample) {
  FakeLive live;
  Recorder journal;
  Options options;
  options.live = &live;
  options.journal = &journal;
  std::vector<uint64_t> registers = {0x7000, 0x5010};
  event::Sample sample;
  sample.time_ns = 10;
  sample.task = {7, 7};
  sample.snapshot = event::Snapshot{{2, 1u << 7 | 1u << 8, registers}, {}, 4096};
  Recording run(options);
  run.add(sample);
  auto p = run.finish();
  EXPECT_EQ(live.asked, 1);
  EXPECT_EQ(journal.order, (std::vector<size_t>{event::Event(event::Mmap{}).index(), event::Event(event::Sample{}).index()}));
}

TEST(Pipeline, AMappingThatWasRemovedByExecIsNotGuessedAt) {
  std::vector<uint64_t> registers = {0x7000, 0x5010};
  event::Sample sample;
  sample.time_ns = 10;
  sample.task = {7, 7};
  sample.in_kernel = true;
  std::vector<uint64_t> kernel = {0xffffffff81000010};
  sample.kernel_chain = kernel;
  sample.snapshot = event::Snapshot{{2, 1u << 7 | 1u << 8, registers}, {}, 4096};
  Recording run;
  run.add(mmap_of(7, 0x5000, "//anon")).add(event::Comm{5, {7, 7}, "new", true});
  run.add(sample);
  auto p = run.finish();
  EXPECT_EQ(p.samples[0].end, profile::StackEnd::kExecInProgress);
  EXPECT_EQ(addresses_root_first(p, p.samples[0].site), kernel) << "the old image's pc is no frame";
}

TEST(Pipeline, SamplesOfAnUndescribedEventAreCounted) {
  event::Sample sample;
  sample.metric = 9;
  auto p = Recording().add(sample).finish();
  EXPECT_TRUE(p.samples.empty());
  EXPECT_EQ(p.diagnostics.count("samples_of_unknown_event"), 1u);
}

constexpr uint64_t kSecond = 1'000'000'000;

// What is kept is what a run would have recorded that began then.
TEST(Pipeline, ForgettingThePastLeavesThePresentAsItIs) {
  auto feed = [](Recording& run, uint64_t from, uint64_t to) {
    for (uint64_t t = from; t < to; t++) {
      run.add(event::SwitchIn{t * kSecond, {7, 7}, 0});
      run.sample(7, t * kSecond + 1, {0x50000 + t % 4, 0x50020, 0x50030}, {0xffffffff81000000 + t % 3});
      run.sample(7, t * kSecond + 2, {0x50000 + t, 0x50020});
      run.add(event::SwitchOut{t * kSecond + 3, {7, 7}, 0, false});
    }
  };
  Recording whole, part;
  for (Recording* run : {&whole, &part}) run->add(mmap_of(7, 0x50000, "//anon"));
  feed(whole, 10, 20);
  for (uint64_t t = 0; t < 20; t += 2) {
    feed(part, t, t + 2);
    if (t > 8) part.forget_before(10 * kSecond);
  }
  auto a = whole.finish(30 * kSecond), b = part.finish(30 * kSecond);
  ASSERT_EQ(a.samples.size(), b.samples.size());
  EXPECT_EQ(a.sites.size(), b.sites.size());
  EXPECT_EQ(a.locations.size(), b.locations.size());
  EXPECT_EQ(a.on_cpu.size(), b.on_cpu.size());
  for (size_t i = 0; i < a.samples.size(); i++) {
    EXPECT_EQ(a.samples[i].time_ns, b.samples[i].time_ns);
    EXPECT_EQ(addresses_root_first(a, a.samples[i].site), addresses_root_first(b, b.samples[i].site));
  }
}

TEST(Pipeline, AWindowOfARunWithEverNewStacksAndThreadsStaysSmall) {
  Recording run;
  run.add(mmap_of(7, 0, "//anon"));
  size_t most = 0, first = 0;
  for (uint64_t t = 1; t < 4000; t++) {
    auto tid = static_cast<int32_t>(100 + t);
    run.add(event::Fork{t * kSecond, {7, tid}, {7, 7}});
    event::Sample s{.time_ns = t * kSecond + 1, .task = {7, tid}};
    std::vector<uint64_t> chain = {0x10 + t % 4000, 0x20 + t * 7 % 4000, 0x30 + t * 13 % 4000};
    s.user_chain = chain;
    run.add(s).add(event::Exit{t * kSecond + 2, {7, tid}});
    if (t % 5 == 0 && t > 10) run.forget_before((t - 10) * kSecond);
    if (t == 100) first = run.bytes_held();
    if (t > 100) most = std::max(most, run.bytes_held());
  }
  EXPECT_LE(most, first + first / 2) << first;
  auto p = run.finish(4000 * kSecond);
  EXPECT_LE(p.threads.size(), 20u);
  EXPECT_LE(p.samples.size(), 20u);
  EXPECT_GE(p.samples.size(), 10u);
}

TEST(Pipeline, DescribedStacksAreStillThereAfterForgetting) {
  Recording run;
  run.add(mmap_of(7, 0x50000, "//anon"));
  std::vector<uint64_t> chain = {0x50010, 0x50020};
  run.add(event::StackDef{.time_ns = 2, .task = {7, 7}, .id = 1, .user_chain = chain, .user_end = event::WalkEnd::kComplete});
  run.sample(7, 3, {0x50040});
  run.forget_before(kSecond);
  run.add(event::Sample{.time_ns = 2 * kSecond, .task = {7, 7}, .stack_id = 1});
  auto p = run.finish(3 * kSecond);
  ASSERT_EQ(p.samples.size(), 1u);
  EXPECT_EQ(addresses_root_first(p, p.samples[0].site), (std::vector<uint64_t>{0x50020, 0x50010}));
  EXPECT_EQ(p.locations.size(), 2u);
}

}  // namespace
}  // namespace cprof::pipeline
