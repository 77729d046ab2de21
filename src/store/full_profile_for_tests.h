// A small profile in which every table has rows and every field of the model has some value that is not its default.
#pragma once

#include <limits>

#include "profile/builder.h"

namespace cprof::store::testing {

inline constexpr uint64_t kStart = 5'000'000'000, kMs = 1'000'000;

struct FullProfile {
  profile::ProfileBuilder builder;
  profile::ProcessId app, tool;
  profile::ThreadId main, worker;
  profile::MetricId clock, off_cpu, space;
  profile::CallSiteId stack, kernel_stack;
  profile::LabelSetId labels;

  profile::Line line(std::string_view name, uint32_t number, std::string_view file) {
    const StringId text = builder.intern(name);
    const profile::Function function{.name = text, .system_name = builder.intern("_Z" + std::string(name)),
                                     .file = builder.intern(file), .start_line = number / 2};
    return {builder.function(function), number, number + 1};
  }

  FullProfile() {
    set_run();
    set_tasks();
    set_code();
    add_values();
    add_times();
    add_lanes();
  }

  void set_run() {
    using profile::RunInfo;
    builder.profile().run = RunInfo{.tool = "cprof 1", .command = "app -x 'y'", .hostname = "host", .kernel_release = "6.1",
                                    .source = "in.pb.gz", .start_ns = kStart, .end_ns = kStart + 900 * kMs,
                                    .start_realtime_ns = 1'700'000'000'000'000'000, .sampling_interval_ns = kMs, .cpus = 8,
                                    .has_switches = true, .has_off_cpu = true, .collector_cpu_ns = 77, .bytes_read = ~uint64_t{0},
                                    .comments = {"first", "", "third"}, .period_type = "space", .period_unit = "bytes",
                                    .period = -5};
    clock = builder.add_metric("cpu-clock", "nanoseconds", kMs, true);
    off_cpu = builder.add_metric(profile::kOffCpuMetric, "nanoseconds");
    space = builder.add_metric("", "");
    builder.profile().run.default_metric = builder.intern("cpu-clock");
    builder.profile().diagnostics.add("lost_samples", Severity::kDataLoss, "samples lost; lower -F", 3, "cpu 1");
    builder.profile().diagnostics.add("a_note", Severity::kInfo, "nothing", 0);
  }

  void set_tasks() {
    app = builder.add_process(10, "app", kStart);
    builder.profile().processes[app.index()].cgroup = builder.intern("/lxc.payload.web/init.scope");
    tool = builder.add_process(20, std::string_view("to\0ol\xff", 6), kStart + kMs);
    main = builder.add_thread(app, 10, "app", kStart);
    worker = builder.add_thread(app, 11, "worker 1", kStart + 2);
    builder.add_thread(tool, 20, "tool");
    builder.profile().processes[tool.index()].end_ns = kStart + 500 * kMs;
    builder.profile().threads[worker.index()].end_ns = kStart + 400 * kMs;
  }

  void set_code() {
    const auto binary = builder.mapping({.path = builder.intern("/usr/bin/app"), .build_id = builder.intern("00aabb"),
                                         .start = 0x400000, .end = 0x500000, .file_offset = 0x1000, .load_bias = 0x3ff000});
    const auto kernel = builder.mapping({.path = builder.intern("[kernel]"), .start = 0xffffffff81000000, .end = ~uint64_t{0}});
    const auto start = builder.location({.mapping = binary, .address = 0x400010, .file_address = 0x1010, .function_start = 0x1000,
                                         .is_return_address = true});
    const auto inlined = builder.location({.mapping = binary, .address = 0x400020, .file_address = 0x1020});
    const auto entry = builder.location({.mapping = kernel, .address = 0xffffffff81000100, .file_address = 0xffffffff81000100,
                                         .kind = profile::FrameKind::kKernel});
    const auto nameless = builder.location({.address = 0xdeadbeef, .kind = profile::FrameKind::kJit, .is_folded = true});
    const std::vector<profile::Line> lines = {line("a", 3, "a.cc"), line("b", 7, "b.cc"), line("c", 9, "c.cc")};
    builder.set_lines(start, std::vector{line("main", 100, "main.cc")});
    builder.set_lines(inlined, lines);
    builder.set_lines(entry, std::vector{line("do_syscall", 0, "")});
    stack = builder.stack(std::vector{start, inlined});
    kernel_stack = builder.stack(std::vector{start, nameless, entry});
  }

  void add_values() {
    const std::vector<profile::Label> set = {
        {.key = builder.intern("request"), .text = builder.intern("x=1")},
        {.key = builder.intern("size"), .number = -7, .unit = builder.intern("bytes"), .is_number = true}};
    labels = builder.label_set(set);
    builder.add_aggregate({.site = stack, .metric = space, .labels = labels, .value = (int64_t{1} << 53) + 1, .thread = main});
    builder.add_aggregate({.metric = space, .value = std::numeric_limits<int64_t>::min(), .end = profile::StackEnd::kBadPc});
    builder.add_aggregate({.metric = space, .value = -1});
  }

  void add_times() {
    for (uint64_t i = 0; i < 600; ++i)
      builder.add_sample({.time_ns = kStart + i * kMs + i * i % 977, .weight = static_cast<int64_t>(i % 300 ? kMs : 2 * kMs),
                          .thread = i % 3 ? main : worker, .site = i % 50 ? (i % 2 ? stack : kernel_stack) : profile::CallSiteId(),
                          .cpu = static_cast<uint32_t>(i / 100), .metric = clock,
                          .labels = i == 5 ? labels : profile::LabelSetId(),
                          .end = i % 70 ? profile::StackEnd::kComplete : profile::StackEnd::kTruncatedSnapshot,
                          .in_kernel = i % 50 != 0 && i % 2 == 0});
    auto& p = builder.profile();
    p.on_cpu = {{main, kStart, kStart + 5 * kMs, 3, true}, {main, kStart + 9 * kMs, kStart + 9 * kMs, 2, false}};
    using profile::WaitClass;
    p.off_cpu = {{.thread = main, .start_ns = kStart + 5 * kMs, .end_ns = kStart + 9 * kMs, .woken_ns = kStart + 8 * kMs,
                  .wait_class = WaitClass::kIo, .site = kernel_stack, .end = profile::StackEnd::kComplete, .waker = worker, .cpu = 3,
                  .is_borrowed = true, .is_guessed = true},
                 {.thread = main, .start_ns = kStart + 10 * kMs, .end_ns = kStart + 11 * kMs, .woken_ns = kStart + 10 * kMs,
                  .wait_class = WaitClass::kSched},
                 {.thread = worker, .start_ns = kStart, .end_ns = kStart + 2 * kMs, .wait_class = WaitClass::kFutex, .site = stack,
                  .is_open = true, .is_uninterruptible = true}};
  }

  void add_lanes() {
    auto& p = builder.profile();
    p.tracks = {{builder.intern("requests"), builder.intern(""), app, {}},
                {builder.intern("heap"), builder.intern("bytes"), app, main},
                {builder.intern("rss"), builder.intern("bytes"), tool, {}}};
    const StringId outer = builder.intern("outer"), inner = builder.intern("inner"), cat = builder.intern("io");
    p.slices = {{.thread = main, .name = inner, .category = cat, .start_ns = kStart + kMs, .duration_ns = kMs, .depth = 1, .labels = labels},
                {.thread = main, .name = outer, .start_ns = kStart, .duration_ns = 5 * kMs},
                {.name = outer, .start_ns = kStart, .duration_ns = 9 * kMs, .track = profile::TrackId(uint32_t{0}), .is_open = true}};
    p.marks = {{.thread = worker, .name = inner, .time_ns = kStart + 3, .labels = labels},
               {.name = outer, .category = cat, .time_ns = kStart + 4, .track = profile::TrackId(uint32_t{0})}};
    p.counters = {{profile::TrackId(uint32_t{1}), kStart, 0.1}, {profile::TrackId(uint32_t{1}), kStart + 1, -1e300},
                  {profile::TrackId(uint32_t{2}), kStart + 2, 7}};
  }
};

}  // namespace cprof::store::testing
