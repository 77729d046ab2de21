#include "analyze/frames.h"

#include <gtest/gtest.h>

#include "profile/builder.h"

namespace cprof::analyze {
namespace {

using namespace profile;

class Frames : public testing::Test {
 protected:
  Line line(std::string_view name, uint32_t number = 0) {
    return {.function = b.function({.name = b.intern(name), .file = b.intern("x.cc")}), .line = number};
  }
  LocationId at(uint64_t address, std::vector<Line> lines = {}, FrameKind kind = FrameKind::kUser) {
    const LocationId id =
        b.location({.mapping = lib, .address = 0x10000 + address, .file_address = address, .kind = kind});
    b.set_lines(id, lines);
    return id;
  }
  static std::string join(std::span<const Frame> frames) {
    std::string text;
    for (const Frame& f : frames) text += (text.empty() ? "" : ";") + std::string(f.name);
    return text;
  }

  ProfileBuilder b;
  MappingId lib = b.mapping({.path = b.intern("/usr/lib/libx.so"), .start = 0x10000});
};

TEST_F(Frames, ExpandInlinedFunctionsOutermostFirst) {
  const CallSiteId leaf =
      b.stack(std::vector{at(1, {line("main", 5)}), at(2, {line("inner", 7), line("middle"), line("outer")})});
  const Profile p = b.take();
  FrameWalker walker(p);
  const auto frames = walker.frames(leaf);
  EXPECT_EQ(join(frames), "main;outer;middle;inner");
  EXPECT_FALSE(frames[1].is_inlined);
  EXPECT_TRUE(frames[2].is_inlined);
  EXPECT_TRUE(frames[3].is_inlined);
  EXPECT_EQ(frames[3].source_line, 7u);
  EXPECT_EQ(frames[3].line, 0u);
  EXPECT_EQ(frames[0].module, "libx.so");
  EXPECT_EQ(frames[0].file, "x.cc");
}

TEST_F(Frames, UnnamedCodeAndMissingStacksHaveStandIns) {
  const CallSiteId leaf = b.stack(std::vector{at(1, {line("main")}), at(0x4080)});
  const Profile p = b.take();
  FrameWalker walker(p);
  EXPECT_EQ(join(walker.frames(leaf)), "main;[libx.so+0x4080]");
  EXPECT_FALSE(walker.frames(leaf)[1].is_named);
  EXPECT_TRUE(walker.frames(leaf)[0].is_named);
  EXPECT_EQ(join(walker.frames(CallSiteId())), "[unknown]");
  EXPECT_EQ(join(walker.frames(leaf)), "main;[libx.so+0x4080]") << "after a stack without frames";
}

TEST_F(Frames, StacksCutAtTheRootBeginWithAMark) {
  const CallSiteId leaf = b.stack(std::vector{at(1, {line("f")}), at(2, {line("g")})});
  const Profile p = b.take();
  FrameWalker walker(p);
  EXPECT_EQ(join(walker.frames(leaf, StackEnd::kMaxDepth)), "[truncated];f;g");
  EXPECT_EQ(join(walker.frames(leaf, StackEnd::kTruncatedSnapshot)), "[truncated];f;g");
  EXPECT_EQ(join(walker.frames(leaf, StackEnd::kNoUnwindInfo)), "f;g");
  EXPECT_EQ(join(walker.frames(leaf)), "f;g");
  EXPECT_EQ(join(walker.frames(CallSiteId(), StackEnd::kMaxDepth)), "[unknown]");
}

TEST_F(Frames, AWalkThroughAnyOrderOfStacksGivesTheSameFrames) {
  std::vector<CallSiteId> leaves;
  std::vector<LocationId> functions;
  for (uint64_t i = 0; i < 5; ++i)
    functions.push_back(at(i + 1, {line("in" + std::to_string(i)), line("f" + std::to_string(i))}));
  uint32_t random = 7;
  for (int i = 0; i < 200; ++i) {
    std::vector<LocationId> stack;
    for (uint32_t depth = (random >> 8) % 6; depth > 0; --depth) {
      random = random * 1664525 + 1013904223;
      stack.push_back(functions[(random >> 16) % 5]);
    }
    random = random * 1664525 + 1013904223;
    leaves.push_back(b.stack(stack));
  }
  const Profile p = b.take();
  FrameWalker reused(p);
  for (CallSiteId leaf : leaves) {
    FrameWalker fresh(p);
    EXPECT_EQ(join(reused.frames(leaf)), join(fresh.frames(leaf)));
  }
}

TEST_F(Frames, DepthIsBoundedByMemoryOnly) {
  const CallSiteId leaf = b.stack(std::vector<LocationId>(50'000, at(1, {line("f")})));
  const Profile p = b.take();
  FrameWalker walker(p);
  EXPECT_EQ(walker.frames(leaf).size(), 50'000u);
}

}  // namespace
}  // namespace cprof::analyze
