#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

namespace cprof {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "cprof-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string text(const std::string& name) const { return read_text_file(path(name), 1 << 30).value_or("<unreadable>"); }
  size_t file_count() const {
    auto files = std::filesystem::directory_iterator(directory_);
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }

  std::string directory_;
};

TEST_F(Files, OutputAppearsWholeAndOnlyAtCommit) {
  auto out = OutputFile::create(path("out"));
  ASSERT_TRUE(out) << out.error().message;
  ASSERT_TRUE(out->write("hello "));
  ASSERT_TRUE(out->flush());
  EXPECT_FALSE(std::filesystem::exists(path("out")));
  EXPECT_EQ(text("out.tmp." + std::to_string(getpid())), "hello ");
  ASSERT_TRUE(out->write("world"));
  ASSERT_TRUE(out->commit());
  EXPECT_EQ(text("out"), "hello world");
  EXPECT_EQ(out->bytes_written(), 11u);
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(Files, AbandonedOutputLeavesTheOldFileAndNoOther) {
  {
    auto first = OutputFile::create(path("out"));
    ASSERT_TRUE(first && first->write("old") && first->commit());
    auto second = OutputFile::create(path("out"));
    ASSERT_TRUE(second && second->write("new") && second->flush());
    EXPECT_EQ(file_count(), 2u);
  }
  EXPECT_EQ(text("out"), "old");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(Files, TemporaryFilesLeaveNothing) {
  const char* before = getenv("TMPDIR");
  const std::string kept = before ? before : "";
  setenv("TMPDIR", directory_.c_str(), 1);
  {
    auto file = TemporaryFile::create();
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_TRUE(file->path().starts_with(directory_ + "/"));
    const TemporaryFile moved = std::move(*file);
    EXPECT_EQ(file_count(), 1u);
    auto other = TemporaryFile::create();
    ASSERT_TRUE(other) << other.error().message;
    const Fd nameless = std::move(*other).without_name();
    EXPECT_TRUE(nameless);
    EXPECT_EQ(file_count(), 1u) << "the moved one still has its name";
    EXPECT_TRUE(open_temporary());
  }
  EXPECT_EQ(file_count(), 0u);
  setenv("TMPDIR", path("nowhere").c_str(), 1);
  EXPECT_EQ(TemporaryFile::create().error().code, ENOENT);
  EXPECT_EQ(open_temporary().error().code, ENOENT);
  if (before) setenv("TMPDIR", kept.c_str(), 1);
  else unsetenv("TMPDIR");
}

TEST_F(Files, LargeOutputIsWrittenInOrder) {
  std::string expected;
  auto out = OutputFile::create(path("out"));
  ASSERT_TRUE(out);
  for (int i = 0; i < 20; ++i) {
    std::string piece(static_cast<size_t>(i) * 50'000, static_cast<char>('a' + i));
    expected += piece;
    ASSERT_TRUE(out->write(piece));
  }
  ASSERT_TRUE(out->commit());
  EXPECT_TRUE(text("out") == expected);
}

TEST_F(Files, MovedOutputIsRemovedOnce) {
  auto out = OutputFile::create(path("out"));
  ASSERT_TRUE(out);
  OutputFile moved = std::move(*out);
  ASSERT_TRUE(moved.write("x") && moved.commit());
  EXPECT_EQ(text("out"), "x");
}

TEST_F(Files, PipeIsWrittenDirectly) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = text("pipe"); });
  auto out = OutputFile::create(path("pipe"));
  EXPECT_TRUE(out && out->write("through") && out->commit());
  out = fail("closed");
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_EQ(file_count(), 1u);
  struct stat st;
  ASSERT_EQ(stat(path("pipe").c_str(), &st), 0);
  EXPECT_TRUE(S_ISFIFO(st.st_mode));
}

TEST_F(Files, DeviceIsWrittenDirectly) {
  auto out = OutputFile::create("/dev/null");
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->write("x"));
  EXPECT_TRUE(out->commit());
  struct stat st;
  ASSERT_EQ(stat("/dev/null", &st), 0);
  EXPECT_TRUE(S_ISCHR(st.st_mode));
}

TEST_F(Files, FullDiskIsAnError) {
  auto out = OutputFile::create("/dev/full");
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->write("buffered"));
  auto result = out->commit();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ENOSPC);
  EXPECT_EQ(result.error().message, "/dev/full: No space left on device");
  auto large = OutputFile::create("/dev/full");
  ASSERT_TRUE(large);
  EXPECT_FALSE(large->write(std::string(1 << 20, 'x')));
}

TEST_F(Files, PlacesThatCannotBeWritten) {
  EXPECT_EQ(OutputFile::create(path("none/out")).error().code, ENOENT);
  EXPECT_EQ(OutputFile::create(directory_).error().code, EISDIR);
  EXPECT_EQ(file_count(), 0u);
}

// A link that somebody put where the temporary file goes must not lead our output elsewhere.
TEST_F(Files, TemporaryNameIsNeverFollowed) {
  std::filesystem::create_symlink(path("victim"), path("out.tmp." + std::to_string(getpid())));
  EXPECT_FALSE(OutputFile::create(path("out")));
  EXPECT_FALSE(std::filesystem::exists(path("victim")));
}

TEST_F(Files, ReadAllStopsAtTheLimit) {
  auto out = OutputFile::create(path("in"));
  ASSERT_TRUE(out && out->write(std::string(1000, 'x')) && out->commit());
  EXPECT_EQ(read_text_file(path("in"), 1000)->size(), 1000u);
  EXPECT_EQ(read_text_file(path("in"), 999).error().code, EFBIG);
  auto endless = read_text_file("/dev/zero", 100'000);
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code, EFBIG);
  EXPECT_EQ(read_text_file(path("absent"), 10).error().code, ENOENT);
  EXPECT_FALSE(read_text_file("/proc/self/stat", 4096)->empty());
}

TEST_F(Files, ReadExactlyAt) {
  auto out = OutputFile::create(path("in"));
  ASSERT_TRUE(out && out->write("0123456789") && out->commit());
  auto fd = open_read(path("in"));
  ASSERT_TRUE(fd);
  std::byte into[4];
  ASSERT_TRUE(read_exactly_at(fd->get(), 6, into, "in"));
  EXPECT_EQ(into[0], std::byte{'6'});
  auto beyond = read_exactly_at(fd->get(), 7, into, "in");
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().message, "in: ends at byte 10");
}

TEST(OutputFile, CheckTellsBeforehandWhatCreateWouldSay) {
  std::string folder = testing::TempDir();
  EXPECT_TRUE(OutputFile::check(folder + "/not-there-yet"));
  EXPECT_TRUE(OutputFile::check("-"));
  EXPECT_TRUE(OutputFile::check("/dev/null"));
  EXPECT_FALSE(OutputFile::check(folder + "/no/such/folder/file"));
  EXPECT_FALSE(OutputFile::check(folder)) << "a folder";
}

}  // namespace
}  // namespace cprof
