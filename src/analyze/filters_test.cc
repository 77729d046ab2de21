// Each filter over a small profile, its sums by hand; then all frame filters against a slow but plain count over random
// stacks.
#include "analyze/filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "analyze/coarsen.h"
#include "analyze/frames.h"
#include "profile/builder.h"
#include "profile/validate.h"

namespace cprof::analyze {
namespace {

using namespace profile;
using Sums = std::map<std::string, int64_t>;

Pattern re(std::string_view text) { return *Pattern::compile(text); }

class FiltersTest : public testing::Test {
 protected:
  Line line(std::string_view name, std::string_view file = "src/x.cc") {
    const StringId text = b.intern(name);
    return {.function = b.function({.name = text, .system_name = text, .file = b.intern(file)}), .line = 1};
  }
  LocationId at(uint64_t address, std::vector<Line> lines) {
    const LocationId id = b.location({.mapping = app, .address = 0x1000 + address, .file_address = address});
    b.set_lines(id, lines);
    return id;
  }
  void sample(uint64_t ms, ThreadId thread, std::vector<LocationId> stack, StackEnd end = StackEnd::kComplete) {
    b.add_sample({.time_ns = kStart + ms * 1'000'000, .weight = 1, .thread = thread, .site = b.stack(stack), .metric = clock, .end = end});
  }
  // main > parse > {read inlined into next}, main > work, and a sample without a stack.
  Profile example() {
    const LocationId main = at(1, {line("main", "src/main.cc")}), parse = at(2, {line("parse")}),
                     next = at(3, {line("read", "lib/io.cc"), line("next")}), work = at(4, {line("work")});
    sample(0, one, {main, parse, next});
    sample(1, one, {main, work});
    sample(2, one, {main, parse});
    sample(3, two, {main, work});
    sample(4, two, {});
    b.profile().run.start_ns = kStart;
    b.profile().run.end_ns = kStart + 10'000'000;
    b.profile().run.start_realtime_ns = 1'000'000'000;
    return b.take();
  }

  static Sums sums(const Profile& p) {
    const auto valid = validate(p);
    EXPECT_TRUE(valid) << (valid ? "" : valid.error().message);
    FrameWalker walker(p);
    Sums result;
    auto add = [&](CallSiteId site, StackEnd end, int64_t value) {
      std::string path;
      for (const Frame& frame : walker.frames(site, end)) path += (path.empty() ? "" : ";") + std::string(frame.name);
      result[path] += value;
    };
    for (const Sample& s : p.samples) add(s.site, s.end, s.weight);
    for (const Aggregate& a : p.aggregates) add(a.site, a.end, a.value);
    for (const OffCpuInterval& off : p.off_cpu) add(off.site, off.end, off_cpu_value(off));
    return result;
  }
  Sums left(const Profile& p, const Filters& filters) {
    auto result = filtered(p, filters);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return result ? sums(*result) : Sums{};
  }
  static std::string refusal(const Profile& p, const Filters& filters) {
    const auto result = filtered(p, filters);
    return result ? "" : result.error().message;
  }

  static constexpr uint64_t kStart = 5'000'000'000;
  ProfileBuilder b;
  MappingId app = b.mapping({.path = b.intern("/opt/app"), .start = 0x1000, .end = 0x2000});
  MetricId clock = b.add_metric("cpu-clock", "nanoseconds", 1'000'000, true);
  ProcessId process = b.add_process(10, "app");
  ThreadId one = b.add_thread(process, 10, "app"), two = b.add_thread(process, 11, "worker");
};

const Sums kAll = {{"main;parse;next;read", 1}, {"main;work", 2}, {"main;parse", 1}, {"[unknown]", 1}};

TEST_F(FiltersTest, NoneLeavesAll) { EXPECT_EQ(left(example(), {}), kAll); }

TEST_F(FiltersTest, Focus) {
  const Profile p = example();
  EXPECT_EQ(left(p, {.focus = {re("^parse$")}}), (Sums{{"main;parse;next;read", 1}, {"main;parse", 1}}));
  EXPECT_EQ(left(p, {.focus = {re("^lib/io")}}), (Sums{{"main;parse;next;read", 1}})) << "by source file";
  EXPECT_EQ(left(p, {.focus = {re("/opt/")}}).size(), 3u) << "by binary";
  EXPECT_EQ(left(p, {.focus = {re("parse"), re("read")}}), (Sums{{"main;parse;next;read", 1}})) << "both";
  EXPECT_EQ(left(p, {.focus = {re("unknown")}}), (Sums{{"[unknown]", 1}}));
  EXPECT_EQ(left(p, {.focus = {re("nothing")}}), Sums{});
}

TEST_F(FiltersTest, Ignore) {
  EXPECT_EQ(left(example(), {.ignore = {re("^read$"), re("unknown")}}), (Sums{{"main;work", 2}, {"main;parse", 1}}));
}

TEST_F(FiltersTest, Hide) {
  const Profile p = example();
  EXPECT_EQ(left(p, {.hide = {re("^parse$")}}), (Sums{{"main;next;read", 1}, {"main;work", 2}, {"main", 1}, {"[unknown]", 1}}));
  EXPECT_EQ(left(p, {.hide = {re("^next$")}}).at("main;parse;read"), 1) << "one of several inlined functions";
  EXPECT_EQ(left(p, {.hide = {re("/opt/app")}}), (Sums{{"[unknown]", 1}})) << "stacks of nothing else go";
}

TEST_F(FiltersTest, GroupsOfProcesses) {
  const LocationId f = at(1, {line("f")}), g = at(2, {line("g")});
  const ProcessId boxed = b.add_process(20, "boxed");
  const ThreadId inside = b.add_thread(boxed, 20, "boxed");
  b.profile().processes[process.index()].cgroup = b.intern("/system.slice/ssh.service");
  b.profile().processes[boxed.index()].cgroup = b.intern("/lxc.payload.web/init.scope");
  sample(0, one, {f});
  sample(1, inside, {g});
  b.profile().on_cpu = {{one, kStart, kStart + 1000, 0, false}, {inside, kStart, kStart + 1000, 1, false}};
  b.profile().off_cpu = {{.thread = inside, .start_ns = kStart + 1000, .end_ns = kStart + 3000, .site = b.stack(std::vector{g})}};
  const Profile p = b.take();
  EXPECT_EQ(left(p, {.labels = {{"container", "web"}}}), (Sums{{"g", 2001}}));
  EXPECT_EQ(left(p, {.labels = {{"cgroup", "/system.slice/ssh.service"}}}), (Sums{{"f", 1}}));
  EXPECT_EQ(left(p, {.labels = {{"container", "web"}, {"cgroup", "/system.slice/ssh.service"}}}), Sums{});
  const auto only = filtered(p, {.labels = {{"container", "web"}}});
  ASSERT_TRUE(only);
  EXPECT_EQ(only->threads.size(), 1u);
  EXPECT_EQ(only->on_cpu.size(), 1u);
  EXPECT_TRUE(only->breaks.empty());
  EXPECT_EQ(only->text(only->processes[0].cgroup), "/lxc.payload.web/init.scope");
  EXPECT_EQ(refusal(p, {.labels = {{"pod", "x"}}}), "no label pod; there is: cgroup, container");
}

TEST_F(FiltersTest, PythonFrames) {
  const LocationId main = at(1, {line("Py_RunMain")}), eval = at(2, {line("PyEval_Vector"), line("eval")}),
                   outer = at(3, {line("py::outer:/a.py")}), inner = at(4, {line("py::inner:/a.py")}), leaf = at(5, {line("memcpy")});
  sample(0, one, {main, eval, outer, eval, inner, eval, leaf});
  sample(1, one, {main, eval, outer});
  sample(2, one, {main});
  sample(3, two, {});
  sample(4, two, {inner}, StackEnd::kMaxDepth);
  const Profile p = b.take();
  EXPECT_EQ(left(p, {.python = PythonFrames::kOnly}),
            (Sums{{"py::outer:/a.py;py::inner:/a.py", 1}, {"py::outer:/a.py", 1}, {"[truncated];py::inner:/a.py", 1}}));
  EXPECT_EQ(left(p, {.python = PythonFrames::kMixed}).size(), 5u);
  EXPECT_EQ(left(p, {.hide = {re("inner")}, .python = PythonFrames::kOnly}), (Sums{{"py::outer:/a.py", 2}}));
}

// The program holds the interpreter; libpython and a host's own functions are told apart by file and name.
TEST_F(FiltersTest, InterpreterFrames) {
  const MappingId lib =
      b.mapping({.path = b.intern("/usr/lib/libpython3.12.so.1.0"), .start = 0x90000, .end = 0x99000});
  const LocationId in_lib = b.location({.mapping = lib, .address = 0x90010, .file_address = 0x10});
  b.set_lines(in_lib, std::vector{line("list_sort")});
  const LocationId main = at(1, {line("Py_RunMain"), line("main")}),
                   eval = at(2, {line("_PyEval_EvalFrameDefault"), line("PyEval_Vector")}),
                   outer = at(3, {line("py::outer:/a.py")}), leaf = at(4, {line("host_work")}),
                   not_cpython = at(5, {line("Pythagoras")});
  sample(0, one, {main, eval, outer, eval, leaf});
  sample(1, one, {main, eval, outer, eval, in_lib});
  sample(2, one, {main, eval});
  sample(3, two, {});
  sample(4, two, {eval, outer, not_cpython});
  const Profile p = b.take();
  EXPECT_EQ(left(p, {.python = PythonFrames::kHide}),
            (Sums{{"main;py::outer:/a.py;host_work", 1},
                  {"main;py::outer:/a.py", 1},
                  {"main;Py_RunMain;PyEval_Vector;_PyEval_EvalFrameDefault", 1},
                  {"[unknown]", 1},
                  {"py::outer:/a.py;Pythagoras", 1}}));
  EXPECT_EQ(left(p, {.focus = {re("list_sort")}, .python = PythonFrames::kHide}), (Sums{{"main;py::outer:/a.py", 1}}));
  EXPECT_EQ(left(p, {.hide = {re("outer|main|host")}, .python = PythonFrames::kHide}).count("host_work"), 0u);
  EXPECT_EQ(left(p, {.show_from = re("py::"), .python = PythonFrames::kHide}).at("py::outer:/a.py;host_work"), 1);
}

TEST_F(FiltersTest, OnlyPythonFramesOfAProfileWithoutAny) {
  const Profile p = example();
  EXPECT_TRUE(refusal(p, {.python = PythonFrames::kOnly}).starts_with("this profile names no Python functions"));
  EXPECT_EQ(left(p, {.python = PythonFrames::kHide}), kAll);
}

TEST_F(FiltersTest, ShowFrom) {
  const Profile p = example();
  EXPECT_EQ(left(p, {.show_from = re("^parse$")}), (Sums{{"parse;next;read", 1}, {"parse", 1}}));
  EXPECT_EQ(left(p, {.show_from = re("^read$")}), (Sums{{"read", 1}})) << "callers at the same place go too";
  EXPECT_EQ(left(p, {.focus = {re("work")}, .show_from = re("main")}), (Sums{{"main;work", 2}}));
}

TEST_F(FiltersTest, ShowFromAStackThatWasCut) {
  const LocationId f = at(1, {line("f")}), g = at(2, {line("g")});
  sample(0, one, {f, g}, StackEnd::kMaxDepth);
  const Profile p = b.take();
  EXPECT_EQ(left(p, {}), (Sums{{"[truncated];f;g", 1}}));
  EXPECT_EQ(left(p, {.show_from = re("g")}), (Sums{{"g", 1}}));
}

TEST_F(FiltersTest, ThreadsAndProcesses) {
  const Profile p = example();
  EXPECT_EQ(left(p, {.threads = {"worker"}}), (Sums{{"main;work", 1}, {"[unknown]", 1}}));
  EXPECT_EQ(left(p, {.threads = {"10"}}), (Sums{{"main;parse;next;read", 1}, {"main;work", 1}, {"main;parse", 1}}));
  EXPECT_EQ(left(p, {.threads = {"10", "11"}}), kAll);
  EXPECT_EQ(left(p, {.processes = {"app"}}), kAll);
  EXPECT_EQ(refusal(p, {.threads = {"12"}}), "no thread 12; there is: app (10), worker (11)");
  EXPECT_EQ(refusal(p, {.processes = {"nginx"}}), "no process nginx; there is: app (10)");
  const auto kept = filtered(p, {.threads = {"worker"}});
  ASSERT_EQ(kept->threads.size(), 1u);
}

TEST_F(FiltersTest, Time) {
  const Profile p = example();
  EXPECT_EQ(left(p, {.time = TimeRange{1'000'000, 3'000'000}}), (Sums{{"main;work", 1}, {"main;parse", 1}}));
  const auto part = filtered(p, {.time = TimeRange{1'000'000, 3'000'000}});
  EXPECT_EQ(part->run.start_ns, kStart + 1'000'000);
  EXPECT_EQ(part->run.end_ns, kStart + 3'000'000);
  EXPECT_EQ(part->run.start_realtime_ns, 1'001'000'000u);
  EXPECT_EQ(filtered(p, {.time = TimeRange{2'000'000, UINT64_MAX}})->run.end_ns, kStart + 10'000'000);
}

TEST_F(FiltersTest, WaitsAreClippedToTheTime) {
  const CallSiteId site = b.stack(std::vector{at(1, {line("wait")})});
  b.profile().run.start_ns = kStart;
  b.profile().off_cpu = {{.thread = one, .start_ns = kStart + 10, .end_ns = kStart + 110, .woken_ns = kStart + 100, .site = site, .waker = two}};
  b.profile().on_cpu = {{.thread = one, .start_ns = kStart, .end_ns = kStart + 10}};
  const Profile p = b.take();
  EXPECT_EQ(left(p, {.time = TimeRange{50, 90}}), (Sums{{"wait", 40}}));
  EXPECT_EQ(left(p, {.time = TimeRange{200, 300}}), Sums{});
  EXPECT_EQ(left(p, {.focus = {re("wait")}}), (Sums{{"wait", 100}}));
  EXPECT_EQ(left(p, {.ignore = {re("wait")}}), Sums{});
  EXPECT_FALSE(filtered(p, {.threads = {"10"}})->off_cpu[0].waker.valid());
}

TEST_F(FiltersTest, DurationsHaveUnits) {
  EXPECT_EQ(parse_duration("1.5"), 1'500'000'000u);
  EXPECT_EQ(parse_duration("250us"), 250'000u);
  EXPECT_EQ(parse_duration("5ms"), 5'000'000u);
  EXPECT_EQ(parse_duration("0"), 0u);
  for (std::string_view bad : {"", "ms", "-1", "5m", "soon", "1e30"}) EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST_F(FiltersTest, TimesThatAreNone) {
  for (std::string_view bad : {"", "1", "..", "2..1", "1..1", "a..b", "1..2h", "-1..2", "1...2"}) EXPECT_FALSE(parse_time_range(bad)) << bad;
  const auto range = parse_time_range("1.5..2500ms");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->from_ns, 1'500'000'000u);
  EXPECT_EQ(range->to_ns, 2'500'000'000u);
  EXPECT_EQ(parse_time_range("..20us")->to_ns, 20'000u);
  EXPECT_EQ(parse_time_range("3s..")->to_ns, UINT64_MAX);
}

TEST_F(FiltersTest, Labels) {
  const CallSiteId site = b.stack(std::vector{at(1, {line("f")})});
  auto set = [&](std::vector<Label> labels) { return b.label_set(labels); };
  const Label get{.key = b.intern("method"), .text = b.intern("GET")}, put{.key = b.intern("method"), .text = b.intern("PUT")};
  const Label size{.key = b.intern("size"), .number = 64, .unit = b.intern("bytes"), .is_number = true};
  b.add_aggregate({.site = site, .metric = clock, .labels = set({get, size}), .value = 1});
  b.add_aggregate({.site = site, .metric = clock, .labels = set({put, size}), .value = 20});
  b.add_aggregate({.site = site, .metric = clock, .labels = set({get}), .value = 300});
  b.add_aggregate({.site = site, .metric = clock, .value = 4000});
  const Profile p = b.take();
  EXPECT_EQ(left(p, {.labels = {{"method", "GET"}}}), (Sums{{"f", 301}}));
  EXPECT_EQ(left(p, {.labels = {{"method", "GET"}, {"size", "64"}}}), (Sums{{"f", 1}}));
  EXPECT_EQ(left(p, {.labels = {{"size", "64bytes"}}}), (Sums{{"f", 21}}));
  EXPECT_EQ(left(p, {.labels = {{"size", "65"}}}), Sums{});
  EXPECT_EQ(refusal(p, {.labels = {{"host", "a"}}}), "no label host; there is: method, size");
  EXPECT_EQ(refusal(p, {.time = TimeRange{0, 1}}), "this profile has no times, so --time finds nothing");
  EXPECT_FALSE(parse_label("method"));
  EXPECT_EQ(parse_label("a=b=c")->value, "b=c");
}

TEST_F(FiltersTest, WhatGoesLeavesABreakInItsThread) {
  const Profile whole = example(), p = *filtered(whole, {.focus = {re("parse")}});
  ASSERT_EQ(p.breaks.size(), 3u);
  EXPECT_EQ(p.breaks[0].thread, ThreadId(0u));
  EXPECT_EQ(p.breaks[0].time_ns, kStart + 1'000'000);
  EXPECT_EQ(p.breaks[0].metric, MetricId(0u));
  EXPECT_EQ(filtered(whole, {.threads = {"10"}})->breaks.size(), 0u);
}

TEST_F(FiltersTest, FiftyThousandFrames) {
  std::vector<LocationId> stack;
  for (uint64_t i = 0; i < 50'000; ++i) stack.push_back(at(i + 1, {line("f" + std::to_string(i % 7))}));
  sample(0, one, stack);
  const Profile p = b.take();
  const auto hidden = filtered(p, {.focus = {re("^f3$")}, .hide = {re("^f[0-5]$")}});
  ASSERT_TRUE(hidden);
  EXPECT_EQ(hidden->sites.size(), 7142u);
  EXPECT_EQ(hidden->sites.back().depth, 7141u);
}

TEST_F(FiltersTest, CoarserFrames) {
  const Profile p = example();
  EXPECT_EQ(sums(coarsened(p, Granularity::kFunctions)), kAll);
  EXPECT_EQ(sums(coarsened(p, Granularity::kFiles)),
            (Sums{{"src/main.cc;src/x.cc;src/x.cc;lib/io.cc", 1}, {"src/main.cc;src/x.cc", 3}, {"[unknown]", 1}}));
  EXPECT_EQ(sums(coarsened(p, Granularity::kLines)).at("main main.cc:1;work x.cc:1"), 2);
  EXPECT_EQ(sums(coarsened(p, Granularity::kAddresses)).at("0x1 main main.cc:1;0x4 work x.cc:1"), 2);
}

class RandomFilters : public FiltersTest, public testing::WithParamInterface<uint32_t> {};

TEST_P(RandomFilters, EqualAPlainCount) {
  std::mt19937 random(GetParam());
  std::vector<std::vector<std::string>> names;  // by location, root first
  std::vector<LocationId> places;
  for (uint64_t i = 1; i <= 20; ++i) {
    std::vector<Line> lines;
    std::vector<std::string> list;
    for (uint64_t n = 1 + random() % 3; n > 0; --n) {
      const std::string name(1, static_cast<char>('a' + random() % 8));
      lines.push_back(line(name, ""));
      list.insert(list.begin(), name);
    }
    places.push_back(at(i, lines));
    names.push_back(list);
  }
  std::vector<std::pair<std::vector<std::string>, int64_t>> stacks;
  for (int i = 0; i < 200; ++i) {
    std::vector<LocationId> stack;
    std::vector<std::string> frames;
    for (uint64_t n = 1 + random() % 7; n > 0; --n) {
      const size_t place = random() % places.size();
      stack.push_back(places[place]);
      frames.insert(frames.end(), names[place].begin(), names[place].end());
    }
    const auto value = static_cast<int64_t>(random() % 50) - 10;
    b.add_aggregate({.site = b.stack(stack), .metric = clock, .value = value});
    stacks.emplace_back(frames, value);
  }
  auto letters = [&] { return fmt::format("^[{}{}]$", static_cast<char>('a' + random() % 8), static_cast<char>('a' + random() % 8)); };
  const std::string focus = letters(), ignore = letters(), hide = letters(), from = letters();
  const Filters filters{.focus = {re(focus)}, .ignore = {re(ignore)}, .hide = {re(hide)}, .show_from = re(from)};
  Sums plain;
  for (auto [frames, value] : stacks) {
    auto finds = [&](const std::string& pattern) {
      return std::ranges::any_of(frames, [&](const std::string& f) { return re(pattern).found_in(f); });
    };
    if (!finds(focus) || finds(ignore)) continue;
    std::erase_if(frames, [&](const std::string& f) { return re(hide).found_in(f); });
    const auto first = std::ranges::find_if(frames, [&](const std::string& f) { return re(from).found_in(f); });
    if (first == frames.end()) continue;
    std::string path;
    for (auto it = first; it != frames.end(); ++it) path += (path.empty() ? "" : ";") + *it;
    plain[path] += value;
  }
  EXPECT_EQ(left(b.take(), filters), plain);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomFilters, testing::Range(1u, 31u));

}  // namespace
}  // namespace cprof::analyze
