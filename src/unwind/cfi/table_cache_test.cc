#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "unwind/cfi/module_table_impl.h"
#include "unwind/cfi/table_file.h"

namespace cprof::unwind {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLibc = "/lib/x86_64-linux-gnu/libc.so.6";

class TableCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cprof-table-cache-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    auto file = object::ElfFile::open(kLibc);
    if (!file) GTEST_SKIP() << file.error().message;
    libc_ = *file;
    if (libc_->build_id().empty()) GTEST_SKIP() << "this libc has no build-id";
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string cache_directory() const { return directory_ + "/a/b"; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    if (fs::exists(cache_directory()))
      for (auto& entry : fs::directory_iterator(cache_directory())) found.push_back(entry.path());
    return found;
  }

  std::string directory_;
  std::shared_ptr<object::ElfFile> libc_;
};

TEST_F(TableCacheTest, SecondRunLoadsTheSameTable) {
  TableCache first(cache_directory());
  auto made = first.get(*libc_, nullptr);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(files().size(), 1u);
  struct stat st;
  ASSERT_EQ(stat(cache_directory().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);

  TableCache second(cache_directory());
  auto loaded = second.get(*libc_, nullptr);
  ASSERT_TRUE(loaded);
  EXPECT_NE(loaded->get(), made->get());
  EXPECT_EQ((*loaded)->impl().rows.rows, (*made)->impl().rows.rows);
  EXPECT_EQ((*loaded)->impl().rows.pages, (*made)->impl().rows.pages);
  EXPECT_EQ(second.diagnostics().entries().size(), first.diagnostics().entries().size());
}

TEST_F(TableCacheTest, SameFileIsCompiledOnce) {
  TableCache cache("");
  EXPECT_EQ(cache.get(*libc_, nullptr)->get(), cache.get(*libc_, nullptr)->get());
}

TEST_F(TableCacheTest, DamagedFileIsMadeAnew) {
  ASSERT_TRUE(TableCache(cache_directory()).get(*libc_, nullptr));
  fs::path path = files().at(0);
  size_t size = fs::file_size(path);
  for (size_t at : {size_t{3}, size_t{9}, size_t{40}, size_t{200}, size - 1}) {
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      char byte = static_cast<char>(file.get() ^ 0x40);
      file.seekp(static_cast<std::streamoff>(at));
      file.put(byte);
    }
    TableCache cache(cache_directory());
    ASSERT_TRUE(cache.get(*libc_, nullptr));
    EXPECT_EQ(cache.diagnostics().count("unwind_cache_file_refused"), 1u) << at;
    TableCache again(cache_directory());
    ASSERT_TRUE(again.get(*libc_, nullptr));
    EXPECT_EQ(again.diagnostics().count("unwind_cache_file_refused"), 0u) << at;
  }
  fs::resize_file(path, size / 2);
  TableCache cache(cache_directory());
  ASSERT_TRUE(cache.get(*libc_, nullptr));
  EXPECT_EQ(cache.diagnostics().count("unwind_cache_file_refused"), 1u);
}

TEST_F(TableCacheTest, WrongIndexesAreRefusedEvenWithARightHash) {
  auto input = read_module_input(*libc_, nullptr);
  ASSERT_TRUE(input);
  ModuleInput copy = *input;
  auto table = compile_module(std::move(copy));
  auto refused = [&](auto&& damage) {
    ModuleTable::Impl bad = *table;
    damage(bad);
    ModuleInput fresh = *input;
    return read_table(write_table(bad, 7), 7, fresh) == nullptr;
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& t) { t.rows.rows[5] |= 0xfffff; }));
  EXPECT_TRUE(refused([](auto& t) { t.rows.pages[3] = 0xffffffff; }));
  EXPECT_TRUE(refused([](auto& t) { t.rows.pages.pop_back(); }));
  EXPECT_TRUE(refused([](auto& t) { t.fdes[1].start = 0; }));
  EXPECT_TRUE(refused([](auto& t) { t.fdes[1].place = ~0u; }));
  EXPECT_TRUE(refused([](auto& t) { t.rows.base += 8; }));
}

TEST_F(TableCacheTest, DirectoryThatOthersMayWriteIsNotUsed) {
  fs::create_directories(cache_directory());
  chmod(cache_directory().c_str(), 0770);
  TableCache cache(cache_directory());
  ASSERT_TRUE(cache.get(*libc_, nullptr));
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(cache.diagnostics().count("unwind_cache_directory_refused"), 1u);
}

TEST_F(TableCacheTest, LinkInPlaceOfTheDirectoryIsNotFollowed) {
  fs::create_directories(directory_ + "/a");
  fs::create_directories(directory_ + "/elsewhere");
  fs::create_directory_symlink(directory_ + "/elsewhere", cache_directory());
  TableCache cache(cache_directory());
  ASSERT_TRUE(cache.get(*libc_, nullptr));
  EXPECT_TRUE(fs::is_empty(directory_ + "/elsewhere"));
}

TEST_F(TableCacheTest, UnusableDirectoryIsNoError) {
  TableCache cache("/proc/self/nothing/here");
  EXPECT_TRUE(cache.get(*libc_, nullptr));
  EXPECT_EQ(cache.diagnostics().count("unwind_cache_directory_refused"), 1u);
}

}  // namespace
}  // namespace cprof::unwind
