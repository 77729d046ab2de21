#include <set>

#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using namespace testing;

TEST(Registry, NamesAndExtensions) {
  std::set<std::string_view> names, extensions;
  for (const FormatInfo& info : all_formats()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.title.empty());
    EXPECT_EQ(find_by_name(info.name), &info);
    for (auto extension : info.extensions) EXPECT_TRUE(extensions.insert(extension).second) << extension;
  }
  EXPECT_EQ(find_by_path("/a.b/x.folded")->name, "folded");
  EXPECT_EQ(find_by_path("x.pb.gz")->name, "pprof");
  EXPECT_EQ(find_by_path("x.perfetto-trace")->name, "pftrace");
  EXPECT_EQ(find_by_path("x.txt")->name, "text");
  EXPECT_EQ(find_by_path("x.unknown"), nullptr);
  EXPECT_EQ(find_by_name("nothing"), nullptr);
}

// An extension under which the writer does not pack.
std::string_view unpacked_ending(const FormatInfo& info) {
  return *std::ranges::find_if(info.extensions, [](std::string_view extension) { return !extension.ends_with(".gz"); });
}

// Each writer's output is claimed by its own format and by no other; with and without gzip around it.
TEST(Registry, EveryFileIsClaimedOnce) {
  const Profile recording = example_recording();
  for (const FormatInfo& info : all_formats()) {
    if (!info.write) continue;
    auto bytes = write_bytes(info, recording, info.extensions.back());
    ASSERT_TRUE(bytes) << info.name << ": " << bytes.error().message;
    const std::string raw = write_bytes(info, recording, unpacked_ending(info)).value_or("");
    for (const FormatInfo& other : all_formats())
      EXPECT_EQ(other.sniff(as_span(raw)), &other == &info) << other.name << " of a " << info.name << " file";
    EXPECT_EQ(find_by_content(as_span(*bytes)), &info) << info.name;
  }
}

// A head may end anywhere in the file: what is claimed is claimed rightly.
TEST(Registry, ShortHeadsAreNeverClaimedByAnother) {
  const Profile recording = example_recording();
  for (const FormatInfo& info : all_formats()) {
    if (!info.write) continue;
    const std::string raw = write_bytes(info, recording, unpacked_ending(info)).value_or("");
    // Shorter heads may be anything: "app 10" is a stack too.
    for (size_t size = 64; size < std::min<size_t>(raw.size(), 600); ++size)
      for (const FormatInfo& other : all_formats())
        EXPECT_FALSE(&other != &info && other.sniff(as_span(std::string_view(raw).substr(0, size))))
            << other.name << " of the first " << size << " bytes of a " << info.name << " file";
  }
}

TEST(Registry, OthersFilesAreNotClaimed) {
  for (std::string_view text : {"", "\x7f" "ELF\x02\x01\x01", "{\"events\":[]}", "SQLite format 3", "<html>", "plain words\n"})
    EXPECT_EQ(find_by_content(as_span(text)), nullptr) << text;
}

TEST(Registry, DetectSaysWhyNot) {
  auto message = [](std::string_view bytes, std::string name) {
    auto found = detect(*memory_input(as_span(bytes), std::move(name)));
    return found ? std::string((*found)->name) : found.error().message;
  };
  EXPECT_EQ(message("a;b 1\n", "x.pb.gz"), "folded");
  EXPECT_EQ(message("", "x.folded"), "folded");
  EXPECT_EQ(message("", "x"), "x: the file is empty");
  EXPECT_EQ(message("rubbish", "x.pb.gz"), "pprof");
  EXPECT_NE(message("rubbish", "x").find("not a format that cprof knows"), std::string::npos);
}

TEST(Registry, DetectKnowsWhatIsOpenedByMistake) {
  auto message = [](std::string_view bytes) {
    auto found = detect(*memory_input(as_span(bytes), "x.pb.gz"));
    return found ? std::string((*found)->name) : found.error().message;
  };
  EXPECT_EQ(message("\x28\xb5\x2f\xfd rest"), "x.pb.gz: compressed by zstd, which is not unpacked here: zstd -d");
  EXPECT_EQ(message(std::string(257, 'n') + "ustar"), "x.pb.gz: a tar archive, which is not unpacked here: tar -x");
  EXPECT_EQ(message("\x7f" "ELF\x02"), "x.pb.gz: a program or a library, not a profile; cprof record -- PROGRAM makes one");
  EXPECT_EQ(message("BZ"), "pprof") << "cut off before the mark's end";
  EXPECT_EQ(message(gzip("PERFILE2" + std::string(200, '\0'))), "x.pb.gz: a perf.data file in gzip, which is not unpacked here: gzip -d");
}

}  // namespace
}  // namespace cprof::format
