#include "object/debug_files.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include "object/elf_builder.h"
#include "object/temporary_tree.h"

namespace cprof::object {
namespace {

using Bytes = ElfBuilder::Bytes;

Bytes debug_file(std::string_view build_id, std::string_view content = "debug") {
  ElfBuilder builder;
  if (!build_id.empty()) builder.add_build_id(build_id);
  builder.add_section(".debug_info", SHT_PROGBITS, ElfBuilder::bytes(content));
  return builder.build();
}

uint32_t crc_of(const Bytes& bytes) {
  return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

class DebugFiles : public testing::Test {
 protected:
  std::shared_ptr<ElfFile> stripped(std::string_view build_id, const std::string& link, uint32_t crc) {
    ElfBuilder builder;
    if (!build_id.empty()) builder.add_build_id(build_id);
    if (!link.empty()) builder.add_debug_link(link, crc);
    auto file = ElfFile::open(tree_.write("bin/lib.so", builder.build()));
    EXPECT_TRUE(file);
    return *file;
  }
  // The found file's path, or "".
  std::string find(ElfFile& file, std::optional<int32_t> pid = {}) {
    auto found = finder_.find(file, tree_ / "bin/lib.so", pid, diagnostics_);
    return found ? found->name() : "";
  }
  size_t losses() const { return diagnostics_.entries().size(); }

  TemporaryTree tree_;
  DebugFileFinder finder_{{tree_.path() + "/none", tree_.path() + "/debug"}};
  Diagnostics diagnostics_;
};

const std::string kIdPath = "debug/.build-id/ab/cdef.debug";
constexpr std::string_view kId = "\xab\xcd\xef";

TEST_F(DebugFiles, ByBuildId) {
  tree_.write(kIdPath, debug_file(kId));
  auto file = stripped(kId, "", 0);
  EXPECT_EQ(find(*file), tree_ / kIdPath);
  EXPECT_EQ(find(*file, getpid()), tree_ / kIdPath);  // as the process sees it
  EXPECT_EQ(losses(), 0u);
}

TEST_F(DebugFiles, ByLinkInEachPlace) {
  Bytes debug = debug_file("");
  auto file = stripped("", "lib.debug", crc_of(debug));
  EXPECT_EQ(find(*file), "");
  for (const std::string& place : {"debug" + tree_.path() + "/bin/lib.debug", std::string("bin/.debug/lib.debug"),
                                   std::string("bin/lib.debug")}) {
    tree_.write(place, debug);
    EXPECT_EQ(find(*file), tree_ / place);
    EXPECT_EQ(find(*file, getpid()), tree_ / place);
  }
  EXPECT_EQ(losses(), 0u);
}

// DBG-01
TEST_F(DebugFiles, WrongChecksumCostsThatFileOnly) {
  Bytes debug = debug_file(kId);
  auto file = stripped(kId, "lib.debug", crc_of(debug));
  debug.back() ^= std::byte{1};
  tree_.write("bin/lib.debug", debug);
  EXPECT_EQ(find(*file), "");
  ASSERT_EQ(diagnostics_.count("debug_file_mismatch"), 1u);
  EXPECT_NE(diagnostics_.entries().find("debug_file_mismatch")->second.example.find("bin/lib.debug"), std::string::npos);
  EXPECT_EQ(losses(), 1u);
}

// DBG-02
TEST_F(DebugFiles, BuildIdWinsOverAWrongLink) {
  Bytes wrong = debug_file("\x11\x22\x33");
  tree_.write("bin/libx.debug", wrong);
  auto file = stripped(kId, "libx.debug", crc_of(wrong));
  EXPECT_EQ(find(*file), "");  // its checksum is right, its build-id is not
  EXPECT_EQ(diagnostics_.count("debug_file_mismatch"), 1u);
  tree_.write(kIdPath, debug_file(kId));
  EXPECT_EQ(find(*file), tree_ / kIdPath);
}

TEST_F(DebugFiles, WrongBuildIdInTheDirectoryOfBuildIds) {
  tree_.write(kIdPath, debug_file("\x11\x22\x33"));
  auto file = stripped(kId, "", 0);
  EXPECT_EQ(find(*file), "");
  EXPECT_EQ(diagnostics_.count("debug_file_mismatch"), 1u);
}

// DBG-04
TEST_F(DebugFiles, DirectoriesAndLinksToThemDoNotEndTheSearch) {
  Bytes debug = debug_file("");
  auto file = stripped("", "lib.debug", crc_of(debug));
  tree_.directory("bin/lib.debug");
  tree_.link("bin/.debug", "/bin");
  tree_.link("debug" + tree_.path() + "/bin", tree_.directory("elsewhere"));
  tree_.write("elsewhere/lib.debug", debug);
  EXPECT_EQ(find(*file), tree_ / ("debug" + tree_.path() + "/bin/lib.debug"));
  EXPECT_EQ(losses(), 0u);
}

TEST_F(DebugFiles, OtherFilesInThePlaceAreCounted) {
  auto file = stripped(kId, "lib.debug", 1);
  tree_.write(kIdPath, "not an ELF file at all");
  tree_.fifo("bin/lib.debug");
  EXPECT_EQ(find(*file), "");
  EXPECT_EQ(diagnostics_.count("debug_file_unreadable"), 1u);
}

TEST_F(DebugFiles, LinkToItselfOrOutsideIsNotUsed) {
  auto self = stripped("", "lib.so", 1);
  EXPECT_EQ(find(*self), "");
  EXPECT_EQ(losses(), 0u);
  Bytes debug = debug_file("");
  tree_.write("x.debug", debug);
  auto outside = stripped("", "../x.debug", crc_of(debug));
  EXPECT_EQ(find(*outside), "");
}

TEST_F(DebugFiles, BelowAnotherRoot) {
  Bytes debug = debug_file(kId);
  auto file = stripped(kId, "lib.debug", crc_of(debug));
  tree_.write("other/usr/bin/lib.debug", debug);
  DebugFileFinder finder(FilePlaces{{}, tree_ / "other"});
  auto found = finder.find(*file, "/usr/bin/lib.so", {}, diagnostics_);
  ASSERT_TRUE(found);
  EXPECT_TRUE(std::ranges::equal(found->build_id(), file->build_id()));
  EXPECT_FALSE(DebugFileFinder(FilePlaces{}).find(*file, "/usr/bin/lib.so", {}, diagnostics_));
}

TEST_F(DebugFiles, TheFileItselfByItsBuildId) {
  tree_.write("debug/.build-id/ab/cdef", debug_file(kId));
  tree_.write("cache/.build-id/ab/cdef/elf", debug_file(kId));
  tree_.write("wrong/.build-id/ab/cdef", debug_file("\xab\xcd\xee"));
  auto id = std::as_bytes(std::span(kId));
  for (const char* directory : {"debug", "cache"})
    EXPECT_TRUE(DebugFileFinder(FilePlaces{{tree_ / directory}, ""}).find_by_build_id(id)) << directory;
  EXPECT_FALSE(DebugFileFinder(FilePlaces{{tree_ / "wrong"}, ""}).find_by_build_id(id));
}

}  // namespace
}  // namespace cprof::object
