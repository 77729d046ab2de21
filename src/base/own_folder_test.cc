#include "base/own_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace cprof {
namespace {

class OwnFolder : public testing::Test {
 protected:
  OwnFolder() {
    std::string pattern = testing::TempDir() + "own_folder.XXXXXX";
    root_ = mkdtemp(pattern.data());
    const char* home = getenv("HOME");
    home_before_ = home ? home : "";
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", root_.c_str(), 1);
  }
  ~OwnFolder() override {
    setenv("HOME", home_before_.c_str(), 1);
    unsetenv("XDG_STATE_HOME");
    std::filesystem::remove_all(root_);
  }

  std::string root_, home_before_;
};

TEST_F(OwnFolder, StateIsBelowHomeForItsOwnerAlone) {
  EXPECT_EQ(state_folder(), root_ + "/.local/state/cprof");
  struct stat st;
  ASSERT_EQ(stat(state_folder().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);
}

TEST_F(OwnFolder, StateIsWhereTheVariableSays) {
  setenv("XDG_STATE_HOME", (root_ + "/a/b").c_str(), 1);
  EXPECT_EQ(state_folder(), root_ + "/a/b/cprof");
  setenv("XDG_STATE_HOME", "relative", 1);
  EXPECT_EQ(state_folder(), root_ + "/.local/state/cprof") << "the specification ignores what is not absolute";
}

TEST_F(OwnFolder, NothingIsLeftInTheFolderOfAnother) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give a folder away";
  ASSERT_EQ(chown(root_.c_str(), 1, 1), 0);
  EXPECT_EQ(state_folder(), "");
  EXPECT_TRUE(std::filesystem::is_empty(root_));
  setenv("HOME", "relative", 1);
  EXPECT_EQ(state_folder(), "");
}

}  // namespace
}  // namespace cprof
