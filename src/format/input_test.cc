#include "format/input.h"

#include <fcntl.h>

#include <thread>

#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using namespace testing;

Result<std::string> read_all_of(Input input, const ReadOptions& options = {}) {
  Bytes bytes = TRY(read_unpacked(std::move(input), options));
  return std::string(reinterpret_cast<const char*>(bytes.data.get()), bytes.size);
}

Input memory(std::string_view text) { return *memory_input(as_span(text), "in"); }

// As if the bytes came down a pipe.
Input piped(std::string_view text) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  std::thread([fd = ends[1], copy = std::string(text)] {
    Fd end(fd);
    (void)write_fully(fd, as_span(copy), "pipe");
  }).detach();
  Input input;
  input.fd = Fd(ends[0]);
  input.name = "pipe";
  input.head.resize(std::min<size_t>(text.size(), 1000));
  for (size_t used = 0; used < input.head.size();) {
    ssize_t n = ::read(ends[0], input.head.data() + used, input.head.size() - used);
    if (n <= 0) break;
    used += static_cast<size_t>(n);
  }
  return input;
}

TEST(Input, PlainPackedAndPipedAreTheSame) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919) + "\n";
  EXPECT_EQ(*read_all_of(memory(text)), text);
  EXPECT_EQ(*read_all_of(memory(gzip(text))), text);
  EXPECT_EQ(*read_all_of(memory(gzip(text) + gzip("more"))), text + "more");
  EXPECT_EQ(*read_all_of(piped(text)), text);
  EXPECT_EQ(*read_all_of(piped(gzip(text))), text);
  EXPECT_EQ(*read_all_of(memory("")), "");
}

TEST(Input, BombsStopAtTheLimit) {
  const std::string bomb = gzip(std::string(size_t{64} << 20, 'x'));
  auto dense = read_all_of(memory(bomb));
  ASSERT_FALSE(dense);
  EXPECT_NE(dense.error().message.find("200 times"), std::string::npos);
  ReadOptions options;
  options.max_ratio = 1'000'000;
  EXPECT_TRUE(read_all_of(memory(bomb), options));
  options.max_input_bytes = 1'000'000;
  auto large = read_all_of(memory(bomb), options);
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("--max-input"), std::string::npos);
}

// The trailer says 5 bytes, or 3 GB, for what unpacks to 1 MB.
TEST(Input, LyingTrailersAreFound) {
  for (uint32_t size : {5u, 3'000'000'000u}) {
    std::string packed = gzip(std::string(1 << 20, 'y'));
    memcpy(packed.data() + packed.size() - 4, &size, 4);
    auto text = read_all_of(memory(packed));
    ASSERT_FALSE(text);
    EXPECT_NE(text.error().message.find("damaged gzip"), std::string::npos) << text.error().message;
  }
}

TEST(Input, CutAndFollowedByRubbish) {
  const std::string packed = gzip("hello, hello, hello");
  for (size_t size = 3; size < packed.size(); ++size)
    EXPECT_FALSE(read_all_of(memory(std::string_view(packed).substr(0, size)))) << size;
  EXPECT_FALSE(read_all_of(memory(packed + "rubbish")));
}

TEST(Input, DirectoriesAndMissingFilesAreRefused) {
  EXPECT_FALSE(open_input("/"));
  auto missing = open_input("/nonexistent/file");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/nonexistent/file"), std::string::npos);
}

}  // namespace
}  // namespace cprof::format
