// A run that names its stacks by ids, recorded beside the pipeline and played again: the same profile, byte for byte.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "format/perfdata/perfdata.h"
#include "format/perfdata/raw_writer.h"
#include "format/format.h"
#include "pipeline/pipeline.h"

namespace cprof::format {
namespace {

class Replay : public testing::Test {
 protected:
  Replay() : capture_(testing::TempDir() + "/replay." + std::to_string(getpid())) {
    info_.metrics = {{"cpu-clock", "nanoseconds", 1, 0, 1'000'000, 0, true}, {"page-faults", "count", 1, 2, 1, 0, false}};
    info_.has_switches = info_.has_kernel_stacks = true;
    info_.start_ns = 1;
  }
  ~Replay() override { unlink(capture_.c_str()); }

  profile::Profile record(std::span<const event::Event> events) {
    RawWriter writer(std::move(*OutputFile::create(capture_)));
    pipeline::Pipeline pipeline({.symbolize = false, .journal = &writer});
    EXPECT_TRUE(pipeline.begin(info_));
    for (const event::Event& event : events) {
      EXPECT_TRUE(pipeline.on_event(event));
      EXPECT_TRUE(pipeline.on_round(event::time_of(event)));
    }
    EXPECT_TRUE(pipeline.finish(1000));
    EXPECT_EQ(writer.dropped(), 0u);
    return pipeline.take();
  }

  profile::Profile replay() {
    Input input;
    input.name = capture_;
    input.seekable = true;
    input.fd = std::move(*open_read(capture_));
    pipeline::Pipeline pipeline({.symbolize = false});
    Diagnostics losses;
    auto played = perfdata_format().open_source(std::move(input), {})->run(pipeline, losses);
    EXPECT_TRUE(played);
    EXPECT_TRUE(losses.entries().empty());
    return pipeline.take();
  }

  std::string written(const profile::Profile& profile, std::string_view format) {
    std::string path = capture_ + ".out";
    OutputFile out = std::move(*OutputFile::create(path));
    auto written = find_by_name(format)->write(profile, out, {});
    EXPECT_TRUE(written) << written.error().message;
    EXPECT_TRUE(out.commit());
    auto text = read_text_file(path, 1 << 20);
    unlink(path.c_str());
    return *text;
  }

  std::string capture_;
  event::SessionInfo info_;
};

const std::vector<uint64_t> kUser = {0x50010, 0x50020, 0x50030}, kKernel = {0xffffffff81000020, 0xffffffff81000010};

std::vector<event::Event> beginning() {
  return {event::Comm{.time_ns = 2, .task = {7, 7}, .name = "app"},
          event::Mmap{.time_ns = 3, .task = {7, 7}, .start = 0x50000, .length = 0x1000, .protection = PROT_READ | PROT_EXEC, .path = "//anon"},
          event::StackDef{.time_ns = 4, .task = {7, 7}, .id = 1, .kernel_chain = kKernel, .user_chain = kUser, .user_end = event::WalkEnd::kComplete},
          event::StackDef{.time_ns = 5, .task = {7, 7}, .id = 2, .user_chain = kUser, .user_end = event::WalkEnd::kMaxDepth}};
}

TEST_F(Replay, SamplesByStackId) {
  auto events = beginning();
  for (uint64_t t = 10; t < 20; t++)
    events.push_back(event::Sample{.time_ns = t, .task = {7, 7}, .metric = t % 5 == 0, .period = 100, .in_kernel = t % 2 == 1, .stack_id = 1 + t % 2});
  events.push_back(event::Sample{.time_ns = 30, .task = {7, 7}, .user_chain = kUser});
  auto live = record(events), again = replay();
  EXPECT_EQ(live.samples.size(), 11u);
  for (std::string_view format : {"folded", "text", "pprof", "pftrace"}) EXPECT_EQ(written(live, format), written(again, format)) << format;
  EXPECT_NE(written(live, "folded").find("[truncated]"), std::string::npos);
}

TEST_F(Replay, Counts) {
  auto events = beginning();
  for (uint64_t t = 10; t < 20; t++)
    events.push_back(event::Count{.time_ns = t, .task = {7, 7}, .metric = t % 5 == 0, .samples = t, .weight = t * 1000, .stack_id = 1 + t % 2});
  auto live = record(events), again = replay();
  EXPECT_FALSE(live.timed());
  for (std::string_view format : {"folded", "text", "pprof"}) EXPECT_EQ(written(live, format), written(again, format)) << format;
  EXPECT_NE(written(live, "folded").find("app;"), std::string::npos);

  std::string path = capture_ + ".out";
  OutputFile out = std::move(*OutputFile::create(path));
  auto refused = find_by_name("pftrace")->write(live, out, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("timeline"), std::string::npos);
  EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
}

// What the kernel's record has no room for beside device and inode: another machine needs it.
TEST_F(Replay, MappingsKeepTheirBuildIds) {
  struct Kept : event::EventSink {
    std::vector<std::pair<event::FileId, std::vector<std::byte>>> mappings;
    Result<void> begin(const event::SessionInfo&) override { return {}; }
    Result<void> on_event(const event::Event& event) override {
      if (const auto* mmap = std::get_if<event::Mmap>(&event))
        mappings.push_back({mmap->file, {mmap->build_id.begin(), mmap->build_id.end()}});
      return {};
    }
    Result<void> on_round(uint64_t) override { return {}; }
    Result<void> finish(uint64_t) override { return {}; }
  } kept;
  const std::vector<std::byte> old_id(20, std::byte{0xab}), new_id(8, std::byte{0xcd});
  event::Mmap mmap{.time_ns = 3, .task = {7, 7}, .start = 0x50000, .length = 0x1000, .protection = PROT_READ | PROT_EXEC,
                   .file = {8, 1, 77, 0}, .build_id = old_id, .path = "/bin/app"};
  std::vector<event::Event> events = {mmap, mmap};
  mmap.build_id = new_id;  // built anew while the run went on
  mmap.file.inode = 78;
  events.push_back(mmap);
  record(events);
  Input input;
  input.name = capture_;
  input.seekable = true;
  input.fd = std::move(*open_read(capture_));
  Diagnostics losses;
  ASSERT_TRUE(perfdata_format().open_source(std::move(input), {})->run(kept, losses));
  ASSERT_EQ(kept.mappings.size(), 3u);
  EXPECT_EQ(kept.mappings[1].second, old_id);
  EXPECT_EQ(kept.mappings[2].second, new_id);
  EXPECT_EQ(kept.mappings[2].first.inode, 78u);
}

}  // namespace
}  // namespace cprof::format
