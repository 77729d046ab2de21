#include "collect/perf/perf_collector.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>

#include "collect/perf/cpu_list.h"
#include "collect/perf/fake_perf_api.h"
#include "collect/perf/running_tasks.h"

namespace cprof::collect {
namespace {

struct Recorder final : event::EventSink {
  event::SessionInfo info;
  std::vector<uint64_t> times;
  std::vector<std::string> names, paths;
  uint64_t lost = 0;
  int finishes = 0;

  Result<void> begin(const event::SessionInfo& i) override {
    info = i;
    return {};
  }
  Result<void> on_event(const event::Event& event) override {
    if (std::holds_alternative<event::Sample>(event)) times.push_back(event::time_of(event));
    if (const auto* comm = std::get_if<event::Comm>(&event)) names.emplace_back(comm->name);
    if (const auto* mmap = std::get_if<event::Mmap>(&event)) paths.emplace_back(mmap->path);
    if (const auto* l = std::get_if<event::Lost>(&event)) lost += l->count;
    return {};
  }
  Result<void> finish(uint64_t) override {
    finishes++;
    return {};
  }
};

class PerfCollectorTest : public testing::Test {
 protected:
  PerfCollectorTest() {
    directory = testing::TempDir() + "/perf_collector_test." + std::to_string(getpid());
    mkdir(directory.c_str(), 0700);
    options.online_cpus_path = write_file("online", "0-1\n");
    options.paranoid_path = write_file("paranoid", "2\n");
    options.mlock_kb_path = write_file("mlock", "516\n");
    options.max_rate_path = write_file("rate", "100000\n");
    options.tracefs = {directory};
    options.stack_mode = StackMode::kFramePointer;
    options.target.cgroup = directory;  // all tasks, without describing every process of the machine
    options.events = {"cpu-clock"};
  }
  ~PerfCollectorTest() override { [[maybe_unused]] int rc = system(("rm -rf " + directory).c_str()); }

  std::string write_file(const std::string& name, const std::string& text) {
    std::string path = directory + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::unique_ptr<PerfCollector> make() {
    auto made = PerfCollector::make(options, api);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
  void put_sample(int cpu, uint64_t time) {
    std::vector<std::byte> bytes;
    ASSERT_TRUE(event::encode_record(event::Sample{.time_ns = time, .task = {5, 5}}, api.sampler_id(cpu), bytes));
    api.put(cpu, bytes);
  }
  std::string open_error() {
    auto collector = make();
    auto opened = collector->open(recorder);
    return opened ? "" : opened.error().message;
  }

  std::string directory;
  FakePerfApi api;
  PerfOptions options;
  Recorder recorder;
};

TEST(CpuList, Parses) {
  EXPECT_EQ(*parse_cpu_list("0-2,8,5-5\n"), (std::vector<int>{0, 1, 2, 5, 8}));
  for (std::string_view bad : {"", "x", "1-", "3-1", "1,,2", "1,", "99999999", "-1"}) EXPECT_FALSE(parse_cpu_list(bad)) << bad;
}

TEST_F(PerfCollectorTest, CpusWithoutSysfs) {
  const std::string stat = write_file("stat", "cpu  1 2 3\ncpu0 1 2\ncpu2 1 2\nintr 5\ncpu9 0\n");
  EXPECT_EQ(*read_online_cpus(directory + "/absent", stat), (std::vector<int>{0, 2}));
  EXPECT_EQ(*read_online_cpus(write_file("online", "1,3\n"), stat), (std::vector<int>{1, 3}));
  EXPECT_FALSE(read_online_cpus(directory + "/absent", write_file("cut", "cpu  1 2 3")));
  EXPECT_FALSE(read_online_cpus(directory + "/absent", directory + "/absent"));
}

TEST_F(PerfCollectorTest, EventModifiers) {
  EXPECT_TRUE(parse_event("cpu-clock:k", {})->only_kernel);
  EXPECT_FALSE(parse_event("cpu-clock:k", {})->only_user);
  for (std::string_view both : {"cpu-clock:uk", "cpu-clock:ku"}) {
    auto event = parse_event(both, {});
    ASSERT_TRUE(event) << both;
    EXPECT_FALSE(event->only_user || event->only_kernel);
    EXPECT_EQ(event->metric.name, "cpu-clock");
  }
  for (std::string_view other : {"cycles:pp", "cycles:P", "cpu-clock:h", "cycles:uH"}) {
    auto event = parse_event(other, {directory});
    ASSERT_FALSE(event) << other;
    EXPECT_NE(event.error().message.find("modifiers"), std::string::npos) << event.error().message;
  }
}

TEST_F(PerfCollectorTest, EventNames) {
  mkdir((directory + "/events").c_str(), 0700);
  mkdir((directory + "/events/sched").c_str(), 0700);
  mkdir((directory + "/events/sched/sched_switch").c_str(), 0700);
  write_file("events/sched/sched_switch/id", "314\n");
  auto tracepoint = parse_event("sched:sched_switch", {"/nowhere", directory});
  ASSERT_TRUE(tracepoint);
  EXPECT_EQ(tracepoint->metric.config, 314u);
  EXPECT_TRUE(tracepoint->every);
  EXPECT_EQ(parse_event("r1a8", {})->metric.config, 0x1a8u);
  EXPECT_EQ(parse_event("cs", {})->metric.name, "context-switches");
  EXPECT_TRUE(parse_event("cycles:u", {})->only_user);
  for (std::string_view bad : {"", "nothing", "r", "rxyz", "sched:../../etc", "sched:absent", ":"}) EXPECT_FALSE(parse_event(bad, {directory})) << bad;
  EventSpec clock = *parse_event("cpu-clock", {});
  set_rate(clock, 0, 999);
  EXPECT_EQ(clock.metric.period, 1001001u);
  EXPECT_EQ(clock.metric.freq_hz, 0u);
}

TEST_F(PerfCollectorTest, OneRingPerOnlineCpu) {
  options.online_cpus_path = write_file("online", "0-15\n");
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  std::set<int> cpus;
  for (const auto& event : api.opened) cpus.insert(event.cpu);
  cpus.erase(-1);  // probes
  EXPECT_EQ(cpus.size(), 16u);
  EXPECT_EQ(recorder.info.cpus_online, 16u);
}

class OffCpuEvents : public PerfCollectorTest {
 protected:
  OffCpuEvents() {
    options.off_cpu = true;
    options.target = {.command = {}, .pids = {}, .tids = {}, .all_cpus = true, .cgroup = {}, .cpus = {}};
    for (const char* folder : {"/events", "/events/sched", "/events/sched/sched_waking"}) mkdir((directory + folder).c_str(), 0700);
    options.pid_namespace_path = link_to("pid:[4026531836]", "initial_namespace");
    write_file("events/sched/sched_waking/id", "371\n");
    write_file("events/sched/sched_waking/format",
               "name: sched_waking\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
               "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n");
  }
  std::string link_to(const char* target, const char* name) {
    const std::string link = directory + "/" + name;
    EXPECT_EQ(symlink(target, link.c_str()), 0);
    return link;
  }
  const perf_event_attr* opened(uint32_t type, uint64_t config) {
    auto found = std::ranges::find_if(api.opened, [&](const auto& e) { return e.cpu >= 0 && e.attr.type == type && e.attr.config == config; });
    return found == api.opened.end() ? nullptr : &found->attr;
  }
  const perf_event_attr* switches() { return opened(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES); }
};

TEST_F(OffCpuEvents, EverySwitchWithASmallStackAndEveryWaking) {
  options.stack_mode = StackMode::kDwarf;
  ASSERT_TRUE(make()->open(recorder));
  const perf_event_attr *stacks = switches(), *wakings = opened(PERF_TYPE_TRACEPOINT, 371);
  ASSERT_TRUE(stacks && wakings);
  EXPECT_EQ(stacks->sample_period, 1u);
  EXPECT_EQ(stacks->sample_stack_user, 4096u);
  EXPECT_TRUE(stacks->sample_type & PERF_SAMPLE_CALLCHAIN);
  EXPECT_TRUE(wakings->sample_type & PERF_SAMPLE_RAW);
  EXPECT_FALSE(wakings->sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER));
  EXPECT_TRUE(recorder.info.has_off_cpu);
  ASSERT_EQ(recorder.info.metrics.size(), 2u) << "wake-ups are no metric";
  EXPECT_FALSE(recorder.info.metrics[0].is_switch_stacks);
  EXPECT_TRUE(recorder.info.metrics[1].is_switch_stacks);
}

TEST_F(OffCpuEvents, ContextSwitchesAsAMetricAreAnotherEvent) {
  options.events = {"context-switches"};
  ASSERT_TRUE(make()->open(recorder));
  ASSERT_EQ(recorder.info.metrics.size(), 2u);
  EXPECT_FALSE(recorder.info.metrics[0].is_switch_stacks);
  EXPECT_TRUE(recorder.info.metrics[1].is_switch_stacks);
}

TEST_F(OffCpuEvents, SwitchesAreTakenInTheKernelEvenWithoutKernelStacks) {
  options.kernel = false;
  ASSERT_TRUE(make()->open(recorder));
  ASSERT_TRUE(switches());
  EXPECT_FALSE(switches()->exclude_kernel);
  EXPECT_TRUE(switches()->exclude_callchain_kernel);
}

TEST_F(OffCpuEvents, WhatIsRefusedIsLeftOutAndSaid) {
  api.refuse_open = [](const perf_event_attr& attr, int32_t, int) {
    const bool is_switches = attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES;
    return is_switches || attr.type == PERF_TYPE_TRACEPOINT ? EACCES : 0;
  };
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  EXPECT_EQ(recorder.info.metrics.size(), 1u);
  EXPECT_TRUE(recorder.info.has_off_cpu) << "times come from the switch records";
  EXPECT_EQ(collector->diagnostics().count("off_cpu_stacks_missing"), 1u);
  EXPECT_EQ(collector->diagnostics().count("wakeups_missing"), 1u);
}

TEST_F(OffCpuEvents, WakingsOfAnotherNumberingAreNotUsed) {
  options.pid_namespace_path = link_to("pid:[4026532999]", "other_namespace");
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  EXPECT_FALSE(opened(PERF_TYPE_TRACEPOINT, 371));
  EXPECT_EQ(collector->diagnostics().count("wakeups_missing"), 1u);
}

TEST_F(OffCpuEvents, WithoutItNothingOfItIsOpened) {
  options.off_cpu = false;
  ASSERT_TRUE(make()->open(recorder));
  EXPECT_FALSE(switches() || opened(PERF_TYPE_TRACEPOINT, 371));
  EXPECT_FALSE(recorder.info.has_off_cpu);
}

TEST_F(PerfCollectorTest, CyclesFallBackToCpuClock) {
  for (int error : {ENOENT, EOPNOTSUPP}) {
    FakePerfApi machine;
    machine.refuse_open = [&](const perf_event_attr& attr, int32_t, int) { return attr.type == PERF_TYPE_HARDWARE ? error : 0; };
    options.events = {};
    auto collector = PerfCollector::make(options, machine);
    ASSERT_TRUE((*collector)->open(recorder));
    ASSERT_EQ(recorder.info.metrics.size(), 1u);
    EXPECT_EQ(recorder.info.metrics[0].name, "cpu-clock");
    EXPECT_EQ(recorder.info.metrics[0].unit, "nanoseconds");
    EXPECT_EQ(recorder.info.metrics[0].period, 1001001u);
    EXPECT_EQ((*collector)->diagnostics().count("cycles_missing"), 1u);
  }
}

TEST_F(PerfCollectorTest, KernelSamplesAreGivenUpWhenForbidden) {
  api.refuse_open = [](const perf_event_attr& attr, int32_t, int) { return attr.exclude_kernel ? 0 : EACCES; };
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  EXPECT_FALSE(recorder.info.has_kernel_stacks);
  EXPECT_NE(recorder.info.kernel_stacks_missing.find("perf_event_paranoid is 2"), std::string::npos);
}

// Both at once: what an unprivileged user sees in a virtual machine.
TEST_F(PerfCollectorTest, ForbiddenKernelAndNoCounter) {
  api.refuse_open = [](const perf_event_attr& attr, int32_t, int) {
    if (!attr.exclude_kernel) return EACCES;
    return attr.type == PERF_TYPE_HARDWARE ? ENOENT : 0;
  };
  options.events = {};
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  EXPECT_EQ(recorder.info.metrics[0].name, "cpu-clock");
  EXPECT_FALSE(recorder.info.has_kernel_stacks);
}

TEST_F(PerfCollectorTest, ErrorsNameCallEventTaskLimit) {
  api.refuse_open = [](const perf_event_attr& attr, int32_t, int cpu) {
    return cpu >= 0 && attr.config == PERF_COUNT_SW_CPU_CLOCK ? EMFILE : 0;
  };
  std::string message = open_error();
  for (std::string_view part : {"perf_event_open", "cpu-clock", "CPU 0", "Too many open files", "ulimit -n"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  api.refuse_open = [](const perf_event_attr&, int32_t, int cpu) { return cpu >= 0 ? EACCES : 0; };
  message = open_error();
  EXPECT_NE(message.find("perf_event_paranoid"), std::string::npos) << message;
}

TEST_F(PerfCollectorTest, RingsShrinkUntilTheLockedMemoryLimitAllows) {
  api.refuse_map = [](size_t pages) { return pages > 8 ? EPERM : 0; };
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  EXPECT_EQ(api.ring(0)->data_size, 8u * static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  FakePerfApi refusing;
  refusing.refuse_map = [](size_t) { return EPERM; };
  auto refused = PerfCollector::make(options, refusing);
  auto opened = (*refused)->open(recorder);
  ASSERT_FALSE(opened);
  for (std::string_view part : {"perf_event_mlock_kb", "ulimit -l", "2 rings need 24 kB", "516"})
    EXPECT_NE(opened.error().message.find(part), std::string::npos) << opened.error().message;
}

TEST_F(PerfCollectorTest, RingsAreMergedByTimeAndGivenBack) {
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  ASSERT_TRUE(collector->start());
  for (uint64_t t : {1, 5}) put_sample(0, t);
  for (uint64_t t : {2, 4, 9}) put_sample(1, t);
  ASSERT_TRUE(collector->poll(0));
  EXPECT_EQ(recorder.times, (std::vector<uint64_t>{1, 2, 4, 5, 9}));
  EXPECT_EQ(api.ring(0)->data_tail, api.ring(0)->data_head);
  EXPECT_EQ(api.ring(1)->data_tail, api.ring(1)->data_head);
}

// What is newer than the pass before may still be preceded by another CPU's record: it waits in its ring.
TEST_F(PerfCollectorTest, TheNewestWaitForTheNextPass) {
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  ASSERT_TRUE(collector->start());
  constexpr uint64_t kFuture = uint64_t{1} << 62;
  put_sample(0, 1);
  put_sample(0, kFuture);
  ASSERT_TRUE(collector->poll(0));
  EXPECT_EQ(recorder.times, (std::vector<uint64_t>{1}));
  EXPECT_LT(api.ring(0)->data_tail, api.ring(0)->data_head);
  put_sample(1, 7);
  ASSERT_TRUE(collector->close());
  EXPECT_EQ(recorder.times, (std::vector<uint64_t>{1, 7, kFuture}));
  EXPECT_EQ(recorder.finishes, 1);
  ASSERT_TRUE(collector->close());
  EXPECT_EQ(recorder.finishes, 1);
}

TEST_F(PerfCollectorTest, ManyRoundsWrapAroundWithoutLoss) {
  options.ring_pages = 2;
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  ASSERT_TRUE(collector->start());
  uint64_t time = 0;
  for (int round = 0; round < 200; round++) {
    for (int i = 0; i < 40; i++) put_sample(i % 2, ++time);
    ASSERT_TRUE(collector->poll(0));
  }
  ASSERT_TRUE(collector->close());
  EXPECT_EQ(recorder.times.size(), 8000u);
  EXPECT_TRUE(std::is_sorted(recorder.times.begin(), recorder.times.end()));
  EXPECT_EQ(collector->diagnostics().entries().count("records_malformed"), 0u);
}

TEST_F(PerfCollectorTest, LossesAreCountedAlsoThoseNoRecordTells) {
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  ASSERT_TRUE(collector->start());
  std::vector<std::byte> bytes;
  ASSERT_TRUE(event::encode_record(event::Lost{.time_ns = 5, .count = 30}, api.sampler_id(0), bytes));
  api.put(0, bytes);
  api.lost_of_fd[static_cast<int>(api.sampler_id(0))] = 42;
  ASSERT_TRUE(collector->close());
  EXPECT_EQ(recorder.lost, 42u);
  EXPECT_EQ(collector->lost_records(), 42u);
}

TEST_F(PerfCollectorTest, NonsenseInARingIsSkippedAndCounted) {
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  ASSERT_TRUE(collector->start());
  api.put(0, std::vector<std::byte>(64));
  ASSERT_TRUE(collector->poll(0));
  put_sample(0, 3);
  ASSERT_TRUE(collector->poll(0));
  EXPECT_EQ(recorder.times, (std::vector<uint64_t>{3}));
  EXPECT_EQ(collector->diagnostics().count("ring_bytes_skipped"), 64u);
}

TEST_F(PerfCollectorTest, CutStacksAreReopenedLarger) {
  options.stack_mode = StackMode::kDwarf;
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  ASSERT_TRUE(collector->start());
  EXPECT_EQ(collector->stack_bytes(), 16384u);
  collector->note_truncated(1, 2000);
  ASSERT_TRUE(collector->poll(0));
  EXPECT_EQ(collector->stack_bytes(), 16384u);
  collector->note_truncated(3, 2000);
  ASSERT_TRUE(collector->poll(0));
  EXPECT_EQ(collector->stack_bytes(), 65528u);
  EXPECT_EQ(api.opened.back().attr.sample_stack_user, 65528u);
  EXPECT_NE(std::ranges::find(api.enabled, api.opened.back().fd), api.enabled.end());
}

TEST_F(PerfCollectorTest, SmallRingsBeginWithSmallStacks) {
  options.stack_mode = StackMode::kDwarf;
  api.refuse_map = [](size_t pages) { return pages > 128 ? EPERM : 0; };
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  ASSERT_TRUE(collector->start());
  EXPECT_EQ(collector->stack_bytes(), 4096u);
  EXPECT_EQ(api.opened.back().attr.sample_stack_user, 4096u);
  collector->note_truncated(3, 2000);
  ASSERT_TRUE(collector->poll(0));
  EXPECT_EQ(collector->stack_bytes(), 8192u);
}

TEST_F(PerfCollectorTest, CpusComeAndGo) {
  Diagnostics diagnostics;
  event::RecordDecoder decoder;
  options.target.cgroup.clear();
  event::GroupDeltas groups;
  EventSet events(api, options, 2, decoder, groups, diagnostics);
  std::vector<EventSpec> specs = {cpu_clock_spec()};
  ASSERT_TRUE(events.probe(specs));
  int32_t all[] = {-1};
  ASSERT_TRUE(events.open(std::vector<int>{0, 1}, all));
  ASSERT_TRUE(events.follow_cpus(std::vector<int>{0}, all));
  EXPECT_TRUE(events.rings()[1].gone);
  EXPECT_EQ(diagnostics.count("cpus_gone_offline"), 1u);
  events.retire(events.rings()[1]);
  EXPECT_EQ(api.unmapped, 1);
  ASSERT_TRUE(events.follow_cpus(std::vector<int>{0, 1}, all));
  EXPECT_EQ(events.rings().size(), 3u);
  EXPECT_EQ(events.rings()[2].cpu, 1);
}

TEST_F(PerfCollectorTest, EndedThreadsArePassedOver) {
  options.target.cgroup.clear();
  options.target.pids = {getpid()};
  api.refuse_open = [](const perf_event_attr&, int32_t pid, int) { return pid > 0 ? ESRCH : 0; };
  EXPECT_EQ(open_error(), "");
}

TEST_F(PerfCollectorTest, DescribesWhatRuns) {
  options.target.cgroup.clear();
  options.target.pids = {getpid()};
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  ASSERT_FALSE(recorder.names.empty());
  EXPECT_NE(std::ranges::find(recorder.paths, "[vdso]"), recorder.paths.end());
  EXPECT_TRUE(std::ranges::all_of(api.opened, [](const auto& e) { return e.pid == getpid() || e.pid == 0; }));
  options.target.pids = {0x3fffffff};
  EXPECT_EQ(open_error(), "no such process 1073741823");
}

TEST_F(PerfCollectorTest, WrongOptionsAreRefused) {
  options.target.pids = {1};
  EXPECT_FALSE(PerfCollector::make(options, api));  // a cgroup and a pid
  options.target.pids = {};
  options.stack_bytes = 70000;
  EXPECT_FALSE(PerfCollector::make(options, api));
  options.stack_bytes = 0;
  options.events = {"no-such-event"};
  EXPECT_FALSE(PerfCollector::make(options, api));
}

int run_to_end(PerfCollector& collector) {
  for (int i = 0; i < 2000; i++) {
    auto more = collector.poll(5);
    if (!more || !*more) break;
    usleep(1000);
  }
  EXPECT_TRUE(collector.close());
  return collector.child_status();
}

TEST_F(PerfCollectorTest, CommandsStatusIsPassedOn) {
  options.target.cgroup.clear();
  struct Case {
    std::vector<std::string> command;
    int status;
  };
  for (const Case& c : {Case{{"sh", "-c", "exit 3"}, 3}, Case{{"sh", "-c", "kill -TERM $$"}, 128 + SIGTERM}}) {
    options.target.command = c.command;
    auto collector = make();
    ASSERT_TRUE(collector->open(recorder));
    EXPECT_EQ(collector->child_status(), -1);
    ASSERT_TRUE(collector->start());
    EXPECT_EQ(run_to_end(*collector), c.status);
  }
}

TEST_F(PerfCollectorTest, CommandsThatCannotRun) {
  options.target.cgroup.clear();
  for (auto [path, status] : {std::pair<std::string, int>{"/no/such/program", 127}, {directory, 126}}) {
    options.target.command = {path};
    auto collector = make();
    ASSERT_TRUE(collector->open(recorder));
    auto started = collector->start();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().message.find(path), 0u);
    EXPECT_EQ(collector->child_status(), status);
    EXPECT_TRUE(collector->close());
  }
}

TEST_F(PerfCollectorTest, ACommandNeverStartedRunsNothing) {
  options.target.cgroup.clear();
  std::string proof = directory + "/ran";
  options.target.command = {"touch", proof};
  {
    auto collector = make();
    ASSERT_TRUE(collector->open(recorder));
  }
  EXPECT_NE(access(proof.c_str(), F_OK), 0);
}

TEST_F(PerfCollectorTest, GroupNames) {
  auto group = parse_events("{cpu-clock,page-faults:u}", 3, {});
  ASSERT_TRUE(group) << group.error().message;
  ASSERT_EQ(group->size(), 2u);
  EXPECT_TRUE((*group)[0].leads_group);
  EXPECT_TRUE((*group)[1].is_read_only());
  EXPECT_EQ((*group)[1].metric.name, "page-faults:u");
  EXPECT_EQ(parse_events("cpu-clock", 0, {})->at(0).group, -1);
  std::string many = "{cpu-clock";
  for (int i = 0; i < 20; i++) many += ",r" + std::to_string(i);
  for (const std::string& bad : {std::string("{}"), std::string("{cpu-clock"), std::string("{cpu-clock,page-faults}:u"),
                                 std::string("{cpu-clock,,cs}"), std::string("{cpu-clock,cpu-clock}"), std::string("{cpu-clock,nothing}"), many + "}"}) {
    auto parsed = parse_events(bad, 0, {});
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  }
}

TEST_F(PerfCollectorTest, AGroupIsOneSampledEventAndOthersReadWithIt) {
  options.events = {"{cpu-clock,page-faults}", "context-switches"};
  auto collector = make();
  ASSERT_TRUE(collector->open(recorder));
  std::vector<FakePerfApi::Opened> events;
  for (const auto& event : api.opened)
    if (event.cpu == 0 && event.attr.config != PERF_COUNT_SW_DUMMY) events.push_back(event);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].attr.read_format & (PERF_FORMAT_GROUP | PERF_FORMAT_ID), uint64_t{PERF_FORMAT_GROUP | PERF_FORMAT_ID});
  EXPECT_TRUE(events[0].attr.sample_type & PERF_SAMPLE_READ);
  EXPECT_EQ(events[0].group, -1);
  EXPECT_EQ(events[1].group, events[0].fd);
  EXPECT_EQ(events[1].attr.sample_period, 0u);
  EXPECT_FALSE(events[1].attr.disabled) << "it counts when its leader does";
  EXPECT_FALSE(events[1].attr.read_format & PERF_FORMAT_GROUP);
  EXPECT_EQ(events[2].group, -1);
  EXPECT_FALSE(events[2].attr.sample_type & PERF_SAMPLE_READ);
  EXPECT_EQ(recorder.info.metrics.size(), 3u);
}

TEST_F(PerfCollectorTest, AGroupThatCannotBeFollowedIsRefusedWithTheWayOut) {
  options.events = {"{cpu-clock,page-faults}"};
  options.target = {};
  options.target.pids = {getpid()};
  api.refuse_open = [](const perf_event_attr& attr, int32_t, int) { return attr.inherit && attr.sample_type & PERF_SAMPLE_READ ? EINVAL : 0; };
  std::string error = open_error();
  EXPECT_NE(error.find("--no-inherit"), std::string::npos) << error;
  options.inherit = false;
  EXPECT_EQ(open_error(), "");
}

}  // namespace
}  // namespace cprof::collect
