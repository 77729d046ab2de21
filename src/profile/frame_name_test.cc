#include "profile/frame_name.h"

#include <gtest/gtest.h>

#include "profile/builder.h"

namespace cprof::profile {
namespace {

TEST(FrameName, StandInsSayWhereTheCodeIs) {
  ProfileBuilder b;
  const MappingId lib = b.mapping({.path = b.intern("/usr/lib/libx.so"), .start = 0x7f0000000000});
  const MappingId kernel = b.mapping({.path = b.intern("[kernel]"), .start = 1});
  const MappingId nfs = b.mapping({.path = b.intern("[nfs]"), .start = 2});
  const MappingId anon = b.mapping({.path = b.intern("//anon"), .start = 3});
  const Profile p = b.take();
  EXPECT_EQ(stand_in_name(p, {.mapping = lib, .address = 0x7f0000004080, .file_address = 0x4080}), "[libx.so+0x4080]");
  EXPECT_EQ(stand_in_name(p, {.mapping = kernel, .address = 0xffffffff81000010, .kind = FrameKind::kKernel}),
            "[kernel+0xffffffff81000010]");
  EXPECT_EQ(stand_in_name(p, {.mapping = nfs, .address = 0x10, .kind = FrameKind::kKernel}), "[nfs+0x10]");
  EXPECT_EQ(stand_in_name(p, {.address = 0x10, .kind = FrameKind::kKernel}), "[kernel+0x10]");
  EXPECT_EQ(stand_in_name(p, {.mapping = anon, .address = 0x99, .file_address = 0x99}), "[anon+0x99]");
  EXPECT_EQ(stand_in_name(p, {.address = 0x99}), "[0x99]");
  EXPECT_EQ(stand_in_name(p, {}), "[unknown]");
}

TEST(FrameName, OnlyStandInsAreTakenForStandIns) {
  for (auto name : {"[libx.so+0x4080]", "[0x99]", "[unknown]", "[kernel+0xFFFF]", "[a+0x1b+0x2]"})
    EXPECT_TRUE(is_stand_in(name)) << name;
  for (auto name :
       {"main", "[truncated]", "", "[]", "[vdso]", "[x+0x]", "[x+0xg]", "operator[]", "[lambda0x12]", "f(int)[0x10"})
    EXPECT_FALSE(is_stand_in(name)) << name;
}

TEST(FrameName, NamesOfPythonFunctions) {
  for (const char* name : {"py::f:/srv/app.py", "py::Pool.<locals>.run:<string>", "py::<module>:<frozen importlib._bootstrap>",
                           "py::f:C:odd.py"})
    EXPECT_TRUE(is_python_name(name)) << name;
  for (const char* name : {"py::init::execute", "py::f(std::string)", "py::f()", "py::f", "py::", "py:::x", "py::f:", "py:f:x", "f", "",
                           "std::py::f:x"})
    EXPECT_FALSE(is_python_name(name)) << name;
}

TEST(FrameName, BaseNames) {
  EXPECT_EQ(base_name("/usr/lib/libx.so.1"), "libx.so.1");
  EXPECT_EQ(base_name("[vdso]"), "[vdso]");
  EXPECT_EQ(base_name("//anon"), "anon");
  EXPECT_EQ(base_name("dir/"), "dir/");
  EXPECT_EQ(base_name(""), "");
}

}  // namespace
}  // namespace cprof::profile
