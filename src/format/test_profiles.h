// For the tests of this folder: small profiles, and files to and from bytes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/frames.h"
#include "format/format.h"
#include "format/input.h"
#include "profile/builder.h"
#include "profile/validate.h"

namespace cprof::format::testing {

using profile::FrameKind;
using profile::LocationId;
using profile::Profile;
using profile::ProfileBuilder;

inline std::span<const std::byte> as_span(std::string_view text) { return std::as_bytes(std::span(text)); }

inline Result<Profile> read_bytes(const FormatInfo& format, std::string_view bytes, const ReadOptions& options = {}) {
  auto profile = format.read(*memory_input(as_span(bytes), "test-input"), options);
  if (profile) {
    auto valid = profile::validate(*profile);
    EXPECT_TRUE(valid) << (valid ? "" : valid.error().message);
  }
  return profile;
}

// What the writer makes of it, in a file whose name ends in `ending`.
inline Result<std::string> write_bytes(const FormatInfo& format, const Profile& profile, std::string_view ending,
                                       const WriteOptions& options = {}) {
  char directory[] = "/tmp/cprof-format-test-XXXXXX";
  if (!mkdtemp(directory)) return fail_errno("mkdtemp");
  std::string path = std::string(directory) + "/out" + std::string(ending);
  auto write = [&]() -> Result<std::string> {
    OutputFile out = TRY(OutputFile::create(path));
    TRY(format.write(profile, out, options));
    TRY(out.commit());
    return read_text_file(path, size_t{1} << 30);
  };
  auto result = write();
  unlink(path.c_str());
  rmdir(directory);
  return result;
}

// Every stack with its values, by names; a sorted text that two equal profiles share.
inline std::string dump(const Profile& profile) {
  analyze::FrameWalker walker(profile);
  std::vector<std::string> lines;
  auto text = [&](profile::CallSiteId site, profile::MetricId metric, profile::ThreadId thread,
                  profile::LabelSetId labels, int64_t value) {
    std::string line;
    for (const auto& frame : walker.frames(site))
      line += std::string(frame.name) + "@" + std::to_string(frame.source_line) + ":" + std::string(frame.file) + ";";
    const auto& m = profile.metrics[metric.index()];
    line += " " + std::string(profile.text(m.name)) + "/" + std::string(profile.text(m.unit)) + "=";
    line += std::to_string(value);
    if (thread.valid()) line += " tid=" + std::to_string(profile.threads[thread.index()].tid);
    for (const auto& l : profile.labels_of(labels))
      line += " " + std::string(profile.text(l.key)) + "=" +
              (l.is_number ? std::to_string(l.number) : std::string(profile.text(l.text))) + std::string(profile.text(l.unit));
    lines.push_back(std::move(line));
  };
  for (const auto& row : profile.aggregates) text(row.site, row.metric, row.thread, row.labels, row.value);
  for (const auto& s : profile.samples) text(s.site, s.metric, s.thread, s.labels, s.weight);
  std::ranges::sort(lines);
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

inline std::string read_dump(const FormatInfo& format, std::string_view text) {
  auto profile = read_bytes(format, text);
  return profile ? dump(*profile) : profile.error().message;
}

inline std::string gzip(std::string_view text) {
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out;
  out.resize(deflateBound(&z, text.size()) + 64);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

inline int64_t total(const Profile& profile, std::string_view metric) {
  int64_t sum = 0;
  for (const auto& row : profile.aggregates)
    if (profile.text(profile.metrics[row.metric.index()].name) == metric) sum += row.value;
  return sum;
}

// A recording of two processes at 1 ms: app (10) with its threads main (10) and worker (11), and tool (20).
class Recording {
 public:
  static constexpr uint64_t kStart = 1'000'000'000, kMs = 1'000'000;

  Recording() {
    Profile& p = builder.profile();
    p.run.start_ns = kStart;
    p.run.sampling_interval_ns = kMs;
    p.run.has_switches = true;
    p.run.start_realtime_ns = 1'700'000'000'000'000'000;
    metric = builder.add_metric("cpu-clock", "nanoseconds", kMs, true);
    p.run.default_metric = p.metrics[0].name;
    auto process = builder.add_process(10, "app");
    main = builder.add_thread(process, 10, "app");
    worker = builder.add_thread(process, 11, "worker 1");
    tool = builder.add_thread(builder.add_process(20, "tool"), 20, "tool");
    binary = builder.mapping({.path = builder.intern("/usr/bin/app"),
                              .build_id = builder.intern("00aabbcc"),
                              .start = 0x400000,
                              .end = 0x500000,
                              .file_offset = 0x1000,
                              .load_bias = 0x3ff000});
    kernel = builder.mapping({.path = builder.intern("[kernel]"),
                              .start = 0xffffffff81000010,
                              .end = 0xffffffff81000011});
    p.run.end_ns = kStart + 100 * kMs;
  }

  profile::Line line(std::string_view name, uint32_t number = 0, std::string_view file = {}) {
    StringId text = builder.intern(name);
    return {builder.function({.name = text, .system_name = text, .file = builder.intern(file)}), number, 0};
  }

  // Code of the binary at 0x400000 + offset; names innermost first.
  LocationId code(uint64_t offset, std::vector<profile::Line> lines, bool is_return = true) {
    return builder.add_location({.mapping = binary,
                                 .address = 0x400000 + offset,
                                 .file_address = 0x1000 + offset,
                                 .function_start = 0x1000,
                                 .kind = FrameKind::kUser,
                                 .is_return_address = is_return},
                                lines);
  }

  LocationId in_kernel(uint64_t offset, std::string_view name, bool is_return) {
    profile::Line l = line(name);
    return builder.add_location({.mapping = kernel,
                                 .address = 0xffffffff81000010 + offset,
                                 .file_address = 0xffffffff81000010 + offset,
                                 .kind = FrameKind::kKernel,
                                 .is_return_address = is_return},
                                {&l, 1});
  }

  void sample(profile::ThreadId thread, uint64_t ms, std::vector<LocationId> root_first, bool is_kernel = false) {
    builder.add_sample({.time_ns = kStart + ms * kMs,
                        .weight = kMs,
                        .thread = thread,
                        .site = builder.stack(root_first),
                        .cpu = 1,
                        .metric = metric,
                        .in_kernel = is_kernel});
  }

  ProfileBuilder builder;
  profile::MetricId metric;
  profile::ThreadId main, worker, tool;
  profile::MappingId binary, kernel;
};

// main > c > b > a where b and a are inlined in c; a kernel stack; a JIT frame; a sample without a stack.
inline Profile example_recording() {
  Recording r;
  LocationId start = r.code(0x10, {r.line("main", 100, "main.cc")});
  LocationId inlined = r.code(0x20, {r.line("a", 3, "a.cc"), r.line("b", 7, "b.cc"), r.line("c", 9, "c.cc")}, false);
  LocationId call = r.code(0x30, {r.line("sys;call", 12, "main.cc")});
  LocationId entry = r.in_kernel(0, "do_syscall_64", true);
  LocationId leaf = r.in_kernel(0x100, "vfs_read", false);
  profile::Line jit_line = r.line("js\x01main");
  LocationId jit = r.builder.named_location({}, FrameKind::kJit, {&jit_line, 1});
  r.sample(r.main, 0, {start, inlined});
  r.sample(r.main, 1, {start, inlined});
  r.sample(r.main, 2, {start, call, entry, leaf}, true);
  r.sample(r.worker, 0, {start, jit});
  r.sample(r.worker, 1, {});
  r.sample(r.tool, 5, {start});
  return r.builder.take();
}

}  // namespace cprof::format::testing
