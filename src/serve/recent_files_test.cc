#include "serve/recent_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace cprof::serve {
namespace {

class RecentFilesTest : public testing::Test {
 protected:
  RecentFilesTest() {
    std::string pattern = testing::TempDir() + "recent_files.XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~RecentFilesTest() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, std::string_view content = "x") const {
    std::ofstream(folder_ + "/" + name) << content;
    return folder_ + "/" + name;
  }
  std::string list() const { return folder_ + "/list"; }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : RecentFiles(list()).entries()) names.push_back(entry.path.substr(folder_.size() + 1));
    return names;
  }

  std::string folder_;
};

using Names = std::vector<std::string>;

TEST_F(RecentFilesTest, TheNewestIsFirstAndEachIsThereOnce) {
  RecentFiles files(list());
  const std::string a = file("a"), b = file("b", "12345");
  files.add(a);
  files.add(b);
  EXPECT_EQ(names(), (Names{"b", "a"}));
  EXPECT_EQ(files.entries()[0].bytes, 5u);
  files.add(folder_ + "/./a");
  EXPECT_EQ(names(), (Names{"a", "b"}));
}

TEST_F(RecentFilesTest, OnlyTheNewestAreKeptAndOnlyWhatIsThereIsNamed) {
  RecentFiles files(list());
  for (int i = 0; i < 13; ++i) files.add(file(fmt::format("f{}", i)));
  EXPECT_EQ(files.entries().size(), 10u);
  std::filesystem::remove(folder_ + "/f12");
  EXPECT_EQ(names().size(), 9u);
  EXPECT_EQ(names().front(), "f11");
}

TEST_F(RecentFilesTest, WhatCannotBeOpenedAgainIsNotKept) {
  RecentFiles files(list());
  for (const std::string& path : {std::string("-"), std::string("/dev/stdin"), folder_, file("two\nlines")}) files.add(path);
  EXPECT_EQ(names(), Names{});
  RecentFiles("").add(file("a"));
  EXPECT_TRUE(RecentFiles("").entries().empty());
}

TEST_F(RecentFilesTest, OnlyItsUserReadsItAndItCanBeForgotten) {
  RecentFiles files(list());
  files.add(file("a"));
  struct stat st;
  ASSERT_EQ(stat(list().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  EXPECT_TRUE(files.forget().has_value());
  EXPECT_FALSE(std::filesystem::exists(list()));
  EXPECT_TRUE(files.forget().has_value()) << "nothing to forget is no fault";
}

TEST_F(RecentFilesTest, ADamagedListHoldsWhatIsAPath) {
  const std::string a = file("a");
  std::ofstream(list()) << "relative\n\n" << a << "\n\x01\x02";
  EXPECT_EQ(names(), Names{"a"});
}

}  // namespace
}  // namespace cprof::serve
