#include "format/cprof/cprof.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "format/test_profiles.h"
#include "store/database.h"
#include "store/full_profile_for_tests.h"
#include "store/profile_text_for_tests.h"
#include "store/writer.h"

namespace cprof::format {
namespace {

using namespace testing;
using store::testing::text_of;

std::string bytes_of(const Profile& profile) {
  auto bytes = write_bytes(cprof_format(), profile, ".cprof");
  EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().message);
  return bytes.value_or("");
}

Profile full_profile() { return store::testing::FullProfile().builder.take(); }

std::string error_of(std::string_view bytes) {
  auto profile = read_bytes(cprof_format(), bytes);
  return profile ? "read" : profile.error().message;
}

// What every writer makes of the profile that was read is what it makes of the one that was written.
void expect_same_outputs(const Profile& a, const Profile& b) {
  for (const FormatInfo& info : all_formats()) {
    if (!info.write) continue;
    for (auto weight : {Weight::kSamples, Weight::kWall}) {
      WriteOptions options;
      options.weight = weight;
      options.by = GroupBy::kThread;
      auto first = write_bytes(info, a, info.extensions[0], options), second = write_bytes(info, b, info.extensions[0], options);
      ASSERT_EQ(first.has_value(), second.has_value()) << info.name;
      EXPECT_EQ(first.value_or(""), second.value_or("")) << info.name;
    }
  }
}

TEST(Cprof, WhatIsReadIsWhatWasWritten) {
  for (const Profile& profile : {example_recording(), full_profile(), Profile()}) {
    const std::string bytes = bytes_of(profile);
    auto back = read_bytes(cprof_format(), bytes);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(text_of(*back), text_of(profile));
    EXPECT_EQ(bytes_of(*back), bytes);
    expect_same_outputs(profile, *back);
  }
}

TEST(Cprof, WrittenTwiceIsTheSame) { EXPECT_EQ(bytes_of(full_profile()), bytes_of(full_profile())); }

TEST(Cprof, IsKnownByItsBytes) {
  const std::string bytes = bytes_of(example_recording());
  EXPECT_EQ(find_by_content(as_span(bytes))->name, "cprof");
  std::string other = bytes;
  other[70] ^= 1;  // another application's id
  EXPECT_EQ(find_by_content(as_span(other)), nullptr);
  EXPECT_FALSE(sniff_cprof(as_span(std::string_view(bytes).substr(0, 60))));
}

// From a pipe, which cannot be read in any order, packed or not.
TEST(Cprof, FromAPipe) {
  const Profile profile = full_profile();
  const std::string bytes = bytes_of(profile);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::jthread writer([&] {
    ASSERT_TRUE(write_fully(ends[1], as_span(bytes), "pipe"));
    close(ends[1]);
  });
  auto input = open_input("/proc/self/fd/" + std::to_string(ends[0]));
  ASSERT_TRUE(input) << input.error().message;
  EXPECT_FALSE(input->seekable);
  auto back = read_cprof(std::move(*input), {});
  close(ends[0]);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(text_of(*back), text_of(profile));
}

TEST(Cprof, DamagedFilesAreOneLine) {
  const std::string bytes = bytes_of(full_profile());
  EXPECT_EQ(error_of(""), "test-input: the file is empty");
  EXPECT_EQ(error_of("no database at all, of more than a hundred bytes: " + std::string(200, 'x')), "test-input: file is not a database");
  size_t failed = 0;
  for (size_t cut = 100; cut < bytes.size(); cut += 3001) {
    const std::string error = error_of(std::string_view(bytes).substr(0, cut));
    EXPECT_EQ(error.find('\n'), std::string::npos);
    EXPECT_NE(error, "read") << cut;
    failed += error != "read";
  }
  EXPECT_GT(failed, 5u);
}

TEST(Cprof, LargerThanTheLimit) {
  ReadOptions options;
  options.max_input_bytes = 4096;
  auto profile = read_bytes(cprof_format(), bytes_of(full_profile()), options);
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().message, "test-input: larger than 4096 bytes; --max-input raises the limit");
}

class KilledWriter : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(mkdtemp(folder_.data())); }
  void TearDown() override {
    for (const char* ending : {"", "-journal"}) unlink((path() + ending).c_str());
    rmdir(folder_.c_str());
  }
  std::string path() const { return folder_ + "/x.cprof.part"; }

  // Commits one profile, then dies in the midst of putting many more rows: pages of the file are changed already.
  void write_and_die() {
    store::testing::FullProfile full;
    auto database = store::Database::open_path(path());
    CPROF_CHECK(database && database->execute("PRAGMA page_size = 1024; BEGIN;"));
    auto writer = store::Writer::create(*database);
    CPROF_CHECK(writer && writer->append(full.builder.profile()) && database->execute("COMMIT; PRAGMA cache_size = 2; BEGIN;"));
    for (uint64_t i = 0; i < 5000; ++i)
      full.builder.add_sample({.time_ns = store::testing::kStart * 2 + i * i, .thread = full.main, .site = full.stack, .metric = full.clock});
    full.builder.add_process(99, "late");
    CPROF_CHECK(writer->append(full.builder.profile()));
    raise(SIGKILL);
  }

  std::string folder_ = "/tmp/cprof-killed-XXXXXX";
};

TEST_F(KilledWriter, LeavesItsLastCommit) {
  const pid_t child = fork();
  if (child == 0) write_and_die();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  struct stat st;
  ASSERT_EQ(stat((path() + "-journal").c_str(), &st), 0) << "the test kills nothing in the midst of a commit";
  auto input = open_input(path());
  ASSERT_TRUE(input);
  auto back = read_cprof(std::move(*input), {});
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(text_of(*back), text_of(full_profile()));
  EXPECT_EQ(stat((path() + "-journal").c_str(), &st), 0) << "the input was changed";
}

// While a commit goes on, a reader waits for it.
TEST_F(KilledWriter, IsWaitedForWhileItLives) {
  auto database = store::Database::open_path(path());
  ASSERT_TRUE(database && database->execute("BEGIN;"));
  ASSERT_TRUE(store::write_profile(*database, example_recording()));
  ASSERT_TRUE(database->execute("COMMIT; BEGIN EXCLUSIVE;"));
  std::jthread commit([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(database->execute("DELETE FROM stats; COMMIT;"));
  });
  auto back = read_cprof(std::move(*open_input(path())), {});
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(back->diagnostics.entries().empty());
}

}  // namespace
}  // namespace cprof::format
