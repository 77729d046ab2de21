#include "object/rooted_open.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "object/process_files.h"
#include "object/temporary_tree.h"

namespace cprof::object {
namespace {

// Both ways of resolving must agree on each of these.
class RootedOpen : public testing::TestWithParam<Result<Fd> (*)(int, const std::string&)> {
 protected:
  void SetUp() override {
    tree_.write("outside", "outside");
    tree_.write("root/outside", "inside");
    tree_.write("root/dir/file", "file");
    tree_.link("root/absolute", "/dir/file");
    tree_.link("root/dir/up", "../dir/../dir/file");
    tree_.link("root/escape", "../../../../../../outside");
    tree_.link("root/host", tree_ / "outside");
    tree_.link("root/loop", "loop");
    tree_.link("root/chain", "to_dir/file");
    tree_.link("root/to_dir", "dir");
    tree_.link("root/magic", "/proc/self/exe");
    tree_.fifo("root/fifo");
    root_ = Fd(open((tree_ / "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (resolve("/dir/file").code == ENOSYS) GTEST_SKIP() << "this kernel has no openat2";
  }

  struct Outcome {
    std::string text;
    int code = 0;
  };
  Outcome resolve(const std::string& path) {
    auto found = GetParam()(root_.get(), path);
    if (!found) return {"", found.error().code};
    auto file = reopen_regular(*found, path);
    if (!file) return {"", file.error().code};
    auto bytes = read_all(file->get(), 1000, path);
    if (!bytes) return {"", bytes.error().code};
    return {std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()), 0};
  }

  TemporaryTree tree_;
  Fd root_;
};

TEST_P(RootedOpen, FollowsLinksInsideTheRoot) {
  for (const char* path : {"/dir/file", "dir/file", "//dir/./file", "/absolute", "/dir/up", "/chain", "/to_dir/file"}) {
    EXPECT_EQ(resolve(path).text, "file") << path;
  }
}

// verifies: H4
TEST_P(RootedOpen, NeverLeavesTheRoot) {
  EXPECT_EQ(resolve("/escape").text, "inside");
  EXPECT_EQ(resolve("/../../outside").text, "inside");
  EXPECT_EQ(resolve("/host").code, ENOENT);
}

TEST_P(RootedOpen, RefusesTheRest) {
  EXPECT_EQ(resolve("/loop").code, ELOOP);
  EXPECT_EQ(resolve("/absent").code, ENOENT);
  EXPECT_EQ(resolve("/dir/file/below").code, ENOTDIR);
  EXPECT_EQ(resolve("/fifo").code, EINVAL);
  EXPECT_EQ(resolve("/dir").code, EINVAL);
  EXPECT_NE(resolve("/").code, 0);
  EXPECT_EQ(resolve("/" + std::string(10'000, 'x')).code, ENAMETOOLONG);
}

TEST_P(RootedOpen, RefusesMagicLinks) {
  Fd slash(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  auto found = GetParam()(slash.get(), "/proc/self/exe");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ELOOP);
}

INSTANTIATE_TEST_SUITE_P(Ways, RootedOpen, testing::Values(&resolve_by_openat2, &resolve_by_walking, &open_below_root));

}  // namespace
}  // namespace cprof::object
