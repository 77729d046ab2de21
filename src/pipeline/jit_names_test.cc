#include "pipeline/jit_names.h"

#include <fmt/format.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace cprof::pipeline {
namespace {

// The map of this very process, where JIT compilers put theirs.
class OwnPerfMap {
 public:
  OwnPerfMap() : path_(fmt::format("/tmp/perf-{}.map", getpid())) { remove(path_.c_str()); }
  ~OwnPerfMap() { remove(path_.c_str()); }
  void append(std::string_view text) const {
    FILE* file = fopen(path_.c_str(), "a");
    ASSERT_NE(file, nullptr);
    fwrite(text.data(), 1, text.size(), file);
    fclose(file);
  }

 private:
  std::string path_;
};

TEST(JitNames, AFileThatGrowsIsReadAgainInTheNextRound) {
  const OwnPerfMap file;
  JitNames maps;
  const int32_t pid = getpid();
  EXPECT_FALSE(maps.find(pid, 0x1000).has_value());
  file.append("1000 20 first\n");
  EXPECT_FALSE(maps.find(pid, 0x1000).has_value()) << "one look a round";
  maps.begin_round();
  ASSERT_TRUE(maps.find(pid, 0x1010).has_value());
  EXPECT_EQ(maps.find(pid, 0x1010)->name, "first");
  file.append("2000 20 second\n");
  maps.begin_round();
  EXPECT_EQ(maps.find(pid, 0x1000)->name, "first");
  ASSERT_TRUE(maps.find(pid, 0x2000).has_value());
  EXPECT_EQ(maps.find(pid, 0x2000)->name, "second");
  EXPECT_FALSE(maps.find(pid, 0x3000).has_value());
}

TEST(JitNames, AFileWrittenAnewInItsPlaceIsTheOneThatCounts) {
  const OwnPerfMap file;
  JitNames maps;
  const int32_t pid = getpid();
  file.append("1000 20 first\n");
  maps.note_code(pid);  // keeps it open
  ASSERT_TRUE(maps.find(pid, 0x1000).has_value());
  {
    const OwnPerfMap removes_it;
    removes_it.append("1000 20 other\n");
    maps.begin_round();
    EXPECT_FALSE(maps.find(pid, 0x2000).has_value());
    EXPECT_EQ(maps.find(pid, 0x1000)->name, "other");
  }
  maps.begin_round();
  EXPECT_FALSE(maps.find(pid, 0x2000).has_value());
  EXPECT_EQ(maps.find(pid, 0x1000)->name, "other") << "it is gone, and was kept open";
}

TEST(JitNames, WhatCannotBeReadIsReported) {
  const OwnPerfMap file;
  JitNames maps;
  file.append("1000 20 first\n");
  ASSERT_EQ(truncate(fmt::format("/tmp/perf-{}.map", getpid()).c_str(), off_t{1} << 40), 0);
  EXPECT_FALSE(maps.find(getpid(), 0x1000).has_value());
  Diagnostics diagnostics;
  maps.report(diagnostics);
  ASSERT_TRUE(diagnostics.entries().contains("jit_files_broken"));
  EXPECT_NE(diagnostics.entries().at("jit_files_broken").example.find("over the limit"), std::string::npos);
}

TEST(JitNames, AFileThatIsGoneWasKeptOpen) {
  JitNames maps;
  const int32_t pid = getpid();
  {
    const OwnPerfMap file;
    maps.note_code(pid);  // nothing yet
    file.append("1000 20 first\n");
    maps.note_code(pid);
    file.append("2000 20 second\n");
  }
  ASSERT_TRUE(maps.find(pid, 0x2000).has_value());
  EXPECT_EQ(maps.find(pid, 0x1000)->name, "first");
}

TEST(JitNames, TheMapOfAnEarlierProcessIsNotUsed) {
  const OwnPerfMap file;
  file.append("1000 20 stale\n");
  const timespec long_ago[2] = {{.tv_sec = 1'000'000'000, .tv_nsec = 0}, {.tv_sec = 1'000'000'000, .tv_nsec = 0}};
  const std::string path = fmt::format("/tmp/perf-{}.map", getpid());
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
  EXPECT_FALSE(JitNames().find(getpid(), 0x1000).has_value());
  file.append("2000 20 fresh\n");
  EXPECT_TRUE(JitNames().find(getpid(), 0x2000).has_value());
}

TEST(JitNames, APipeInItsPlaceIsNoMap) {
  const std::string path = fmt::format("/tmp/perf-{}.map", getpid());
  remove(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  JitNames maps;
  EXPECT_FALSE(maps.find(getpid(), 0x1000).has_value());  // and does not wait for a writer
  remove(path.c_str());
}

}  // namespace
}  // namespace cprof::pipeline
