// Recordings in several files: their names, that the newest stay, and what is said when one cannot be written.
#include "session/parts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "profile/builder.h"

namespace cprof::session {
namespace {

Output output_of(const std::string& path, std::string_view format) { return {path, format::find_by_name(format)}; }

TEST(Parts, TheNumberStandsBeforeTheExtension) {
  EXPECT_EQ(part_path(output_of("run.pb.gz", "pprof"), 0), "run.0.pb.gz");
  EXPECT_EQ(part_path(output_of("run.folded", "folded"), 12), "run.12.folded");
  EXPECT_EQ(part_path(output_of("a.b/run.perfetto-trace", "pftrace"), 3), "a.b/run.3.perfetto-trace");
  EXPECT_EQ(part_path(output_of("run.out", "folded"), 3), "run.3.out") << "--format over a name of its own";
  EXPECT_EQ(part_path(output_of("a.b/run", "folded"), 3), "a.b/run.3");
  EXPECT_EQ(part_path(output_of("a/.hidden", "folded"), 3), "a/.hidden.3");
}

class Writing : public testing::Test {
 protected:
  Writing() : root_(testing::TempDir() + "/parts." + std::to_string(getpid())) {
    std::filesystem::create_directory(root_);
    outputs_ = {output_of(root_ + "/run.folded", "folded"), output_of(root_ + "/run.pb.gz", "pprof")};
  }
  ~Writing() override { std::filesystem::remove_all(root_); }

  static profile::Profile profile_named(std::string_view name) {
    profile::ProfileBuilder b;
    auto clock = b.add_metric("cpu-clock", "nanoseconds", 1, true);
    auto thread = b.add_thread(b.add_process(7, name), 7, name);
    b.add_sample({.time_ns = 5, .thread = thread, .metric = clock});
    return b.take();
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(root_)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  std::string text(const std::string& name) const {
    std::ifstream in(root_ + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string root_;
  std::vector<Output> outputs_;
  format::WriteOptions options_;
};

TEST_F(Writing, EachPartGoesToItsOwnFilesAndTheNewestStay) {
  PartWriter parts(outputs_, options_, 2);
  int made_here = 0;
  for (const char* name : {"zero", "one", "two"}) {
    ASSERT_TRUE(parts.start([&]() -> Result<profile::Profile> {
      made_here++;
      return profile_named(name);
    }));
    ASSERT_TRUE(parts.wait());
    EXPECT_FALSE(parts.is_busy());
  }
  EXPECT_EQ(made_here, 0) << "parts are made in a copy of the process";
  EXPECT_EQ(files(), (std::vector<std::string>{"run.1.folded", "run.1.pb.gz", "run.2.folded", "run.2.pb.gz"}));
  EXPECT_EQ(text("run.2.folded"), "two;[unknown] 1\n");
  EXPECT_EQ(parts.count_written(), 3u);
  EXPECT_EQ(parts.written().size(), 4u);

  std::vector<Output> last;
  std::vector<std::string> outdated;
  parts.name_last(last, outdated);
  EXPECT_EQ(last[0].path, root_ + "/run.3.folded");
  EXPECT_EQ(outdated, (std::vector<std::string>{root_ + "/run.1.folded", root_ + "/run.1.pb.gz"}));
}

TEST_F(Writing, AllStayWhenNoNumberIsGiven) {
  PartWriter parts(outputs_, options_, 0);
  for (int i = 0; i < 3; i++) ASSERT_TRUE(parts.start([] { return Result<profile::Profile>(profile_named("x")); }));
  ASSERT_TRUE(parts.wait());
  EXPECT_EQ(files().size(), 6u);
}

TEST_F(Writing, APartTellsWhatItsFormatCannotHold) {
  const std::string told = root_ + "/told";
  outputs_.resize(1);
  PartWriter parts(outputs_, options_, 0, [&](const std::string& path, const Diagnostics& losses) {
    std::ofstream(told, std::ios::app) << path << " " << losses.count("samples_of_other_events") << "\n";
  });
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(parts.start([]() -> Result<profile::Profile> {
      profile::ProfileBuilder b;
      const auto clock = b.add_metric("cpu-clock", "nanoseconds", 1, true), faults = b.add_metric("page-faults", "count");
      b.add_sample({.time_ns = 5, .metric = clock});
      b.add_sample({.time_ns = 6, .metric = faults});
      return b.take();
    }));
  ASSERT_TRUE(parts.wait());
  EXPECT_EQ(text("told"), root_ + "/run.0.folded 1\n" + root_ + "/run.1.folded 1\n");
}

TEST_F(Writing, ThePartThatFailsIsNamedAndTheNextOneIsWritten) {
  PartWriter parts(outputs_, options_, 0);
  ASSERT_TRUE(parts.start([] { return Result<profile::Profile>(fail("no room for names")); }));
  auto waited = parts.wait();
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().message, "no room for names");
  ASSERT_TRUE(parts.start([]() -> Result<profile::Profile> { _exit(3); }));
  waited = parts.wait();
  ASSERT_FALSE(waited);
  EXPECT_NE(waited.error().message.find("run.1.folded"), std::string::npos);
  ASSERT_TRUE(parts.start([] { return Result<profile::Profile>(profile_named("x")); }));
  EXPECT_TRUE(parts.wait());
  EXPECT_EQ(files(), (std::vector<std::string>{"run.2.folded", "run.2.pb.gz"}));
}

}  // namespace
}  // namespace cprof::session
