#include "object/process_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "object/elf_builder.h"
#include "object/elf_file.h"
#include "object/process_stat.h"
#include "object/temporary_tree.h"

namespace cprof::object {
namespace {

constexpr int32_t kNoSuchPid = 0x3fffffff;

std::vector<MapsEntry> parse(std::string_view text, size_t malformed = 0) {
  std::vector<MapsEntry> entries;
  EXPECT_EQ(parse_maps(text, [&](const MapsEntry& entry) { entries.push_back(entry); }), malformed);
  return entries;
}

TEST(ParseMaps, EveryKindOfLine) {
  auto entries = parse(
      "55d0c0a00000-55d0c0a02000 r-xp 00001000 fd:01 123456                     /usr/bin/my program\n"
      "7f0000000000-7f0000001000 rw-s 00000000 00:01 7                          /memfd:ring (deleted)\n"
      "7f0000001000-7f0000002000 rw-p 00000000 00:00 0 \n"
      "7f0000002000-7f0000003000 r--p 00000000 00:2a 18446744073709551615       /tmp/two\\012lines (deleted)\n"
      "7f0000003000-7f0000004000 rw-p 00000000 00:00 0                          //anon\n"
      "7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0                          [vdso]\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]");
  ASSERT_EQ(entries.size(), 7u);
  EXPECT_EQ(entries[0].start, 0x55d0c0a00000u);
  EXPECT_EQ(entries[0].end, 0x55d0c0a02000u);
  EXPECT_EQ(entries[0].file_offset, 0x1000u);
  EXPECT_EQ(entries[0].major, 0xfdu);
  EXPECT_EQ(entries[0].minor, 1u);
  EXPECT_EQ(entries[0].inode, 123456u);
  EXPECT_EQ(entries[0].path, "/usr/bin/my program");
  EXPECT_TRUE(entries[0].readable && entries[0].executable && !entries[0].writable && !entries[0].shared);
  EXPECT_EQ(entries[1].path, "/memfd:ring");
  EXPECT_TRUE(entries[1].deleted && entries[1].shared && entries[1].writable);
  EXPECT_EQ(entries[2].path, "");
  EXPECT_FALSE(entries[2].deleted);
  EXPECT_EQ(entries[3].path, "/tmp/two\nlines");
  EXPECT_EQ(entries[3].inode, ~uint64_t{0});
  EXPECT_TRUE(entries[3].deleted);
  EXPECT_EQ(entries[4].path, "//anon");
  EXPECT_EQ(entries[5].path, "[vdso]");
  EXPECT_EQ(entries[6].end, 0xffffffffff601000u);
}

TEST(ParseMaps, MalformedLinesAreSkippedAndCounted) {
  auto entries = parse(
      "\n"
      "garbage\n"
      "1000-1000 r-xp 00000000 00:00 0 /empty\n"
      "2000-1000 r-xp 00000000 00:00 0 /backwards\n"
      "1000-2000 r-x\n"
      "1000-2000 r-xp 00000000 00:00 0x /joined\n"
      "10000000000000000-20000000000000000 r-xp 00000000 00:00 0 /too large\n"
      "1000-2000 r-xp 00000000 00:00 0 /good\n",
      7);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].path, "/good");
}

TEST(ReadMaps, FindsOurOwnCode) {
  auto entries = read_maps(getpid());
  ASSERT_TRUE(entries);
  auto address = reinterpret_cast<uint64_t>(&parse);
  bool found = std::any_of(entries->begin(), entries->end(), [&](const MapsEntry& e) {
    return e.executable && e.start <= address && address < e.end && e.inode != 0;
  });
  EXPECT_TRUE(found);
  EXPECT_FALSE(read_maps(kNoSuchPid));
}

TEST(ParseStat, NameMayHoldAnything) {
  std::string rest = " S 17 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 2000";
  auto line = parse_stat("42 (a) b (c) d) R\n))" + rest);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->comm, "a) b (c) d) R\n)");
  EXPECT_EQ(line->parent_pid, 17);
  EXPECT_EQ(line->start_ticks, 987654u);
  EXPECT_FALSE(parse_stat(""));
  EXPECT_FALSE(parse_stat("42 (x) S"));
  EXPECT_FALSE(parse_stat("42 )x( S 1"));
}

TEST(ParseStatus, InnermostNumber) {
  EXPECT_EQ(parse_innermost_pid("Name:\tx\nNSpid:\t1000\t20\t3\nNSpgid:\t9\n"), 3);
  EXPECT_EQ(parse_innermost_pid("Name:\tx\nNSpid:\t1000\n"), 1000);
  EXPECT_EQ(parse_innermost_pid("Name:\tx\n"), std::nullopt);
}

TEST(ReadStatus, OfOurOwnThread) {
  std::thread([] {
    prctl(PR_SET_NAME, "odd) (name");
    auto status = read_status(getpid(), gettid());
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(status->comm, "odd) (name");
    EXPECT_EQ(status->pid, getpid());
    EXPECT_EQ(status->parent_pid, getppid());
    EXPECT_GT(status->pid_in_namespace, 0);
    auto main_status = read_status(getpid(), getpid());
    ASSERT_TRUE(main_status);
    EXPECT_GE(status->start_time_ns, main_status->start_time_ns);
    auto threads = list_threads(getpid());
    ASSERT_TRUE(threads);
    EXPECT_TRUE(std::binary_search(threads->begin(), threads->end(), gettid()));
  }).join();
  EXPECT_FALSE(read_status(kNoSuchPid, kNoSuchPid));
  auto processes = list_processes();
  ASSERT_TRUE(processes);
  EXPECT_TRUE(std::binary_search(processes->begin(), processes->end(), getpid()));
}

// A file of ours, mapped into ourselves as a target's would be.
class MappedFile : public testing::Test {
 protected:
  void SetUp() override {
    ElfBuilder builder;
    builder.add_build_id("first file id");
    builder.add_section(".text", SHT_PROGBITS, ElfBuilder::Bytes(8192), SHF_EXECINSTR);
    path_ = tree_.write("lib.so", builder.build());
    Fd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    void* address = mmap(nullptr, kLength, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    ASSERT_NE(address, MAP_FAILED);
    start_ = reinterpret_cast<uint64_t>(address);
    auto entries = read_maps(getpid());
    ASSERT_TRUE(entries);
    auto entry = std::find_if(entries->begin(), entries->end(), [&](const MapsEntry& e) { return e.start == start_; });
    ASSERT_NE(entry, entries->end());
    identity_ = {entry->major, entry->minor, entry->inode, {}};
  }
  void TearDown() override { munmap(reinterpret_cast<void*>(start_), kLength); }

  Result<Fd> find(int32_t pid) { return open_mapped_file(pid, start_, start_ + kLength, path_, identity_); }
  void replace_with_other_file() {
    ElfBuilder other;
    other.add_build_id("second file id");
    tree_.write("lib.so", other.build());
  }

  static constexpr size_t kLength = 4096;
  TemporaryTree tree_;
  std::string path_;
  uint64_t start_ = 0;
  FileIdentity identity_;
};

TEST_F(MappedFile, FoundByDeviceAndInode) {
  auto fd = find(getpid());
  ASSERT_TRUE(fd) << fd.error().message;
  auto gone = find(kNoSuchPid);  // the process has exited: the path itself, checked
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_TRUE(matches_identity(gone->get(), identity_));
}

TEST_F(MappedFile, AnotherFileAtThePathIsNeverUsed) {
  replace_with_other_file();
  auto gone = find(kNoSuchPid);
  ASSERT_FALSE(gone);
  EXPECT_NE(gone.error().message.find("another file"), std::string::npos) << gone.error().message;
  auto alive = find(getpid());  // by map_files, where we may
  EXPECT_TRUE(!alive || matches_identity(alive->get(), identity_));
}

TEST_F(MappedFile, KnownBuildIdDecidesAlone) {
  auto id = ElfBuilder::bytes("first file id");
  identity_ = {0, 0, 0, id};
  ASSERT_TRUE(find(kNoSuchPid));
  replace_with_other_file();
  EXPECT_FALSE(find(kNoSuchPid));
}

TEST_F(MappedFile, UnknownIdentityIsNotTakenFromOurRoot) {
  identity_ = {};
  EXPECT_TRUE(find(getpid()));
  EXPECT_FALSE(find(kNoSuchPid));
}

TEST_F(MappedFile, FifoInItsPlaceNeitherHangsNorMatches) {
  ASSERT_EQ(unlink(path_.c_str()), 0);
  tree_.fifo("lib.so");
  EXPECT_FALSE(find(kNoSuchPid));
  EXPECT_FALSE(open_in_root(getpid(), path_));
  EXPECT_FALSE(open_in_root(getpid(), "/dev/null"));
  EXPECT_FALSE(open_in_root(getpid(), "/tmp"));
}

TEST(OpenMappedFile, OnlyPathsOfFiles) {
  EXPECT_FALSE(open_mapped_file(getpid(), 0, 1, "[vdso]", {}));
  EXPECT_FALSE(open_mapped_file(getpid(), 0, 1, "", {}));
}

TEST(OwnVdso, IsAnElfFileWithItsFunctions) {
  auto image = read_own_vdso();
  ASSERT_TRUE(image) << image.error().message;
  auto file = ElfFile::from_memory(std::move(*image), "[vdso]");
  ASSERT_TRUE(file) << file.error().message;
  auto symbols = (*file)->symbols();
  ASSERT_TRUE(symbols);
  bool clock = std::any_of(symbols->begin(), symbols->end(),
                           [](const Symbol& s) { return s.name.find("clock_gettime") != s.name.npos; });
  EXPECT_TRUE(clock);
}

TEST(ProcessMemory, ReadsUpToWhereItEnds) {
  size_t length = 3 * 4096;
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto start = reinterpret_cast<uint64_t>(memory);
  memset(memory, 'x', length);
  ASSERT_EQ(mprotect(reinterpret_cast<void*>(start + 2 * 4096), 4096, PROT_NONE), 0);
  std::vector<std::byte> into(length);
  EXPECT_EQ(read_process_memory(getpid(), start + 100, into), size_t{2 * 4096 - 100});
  EXPECT_EQ(into[8091], std::byte{'x'});
  EXPECT_FALSE(read_process_memory(getpid(), start + 2 * 4096, into));
  EXPECT_EQ(read_process_memory(getpid(), start, {}), size_t{0});
  EXPECT_FALSE(read_process_memory(kNoSuchPid, start, into));
  munmap(memory, length);
}

}  // namespace
}  // namespace cprof::object
