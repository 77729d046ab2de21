#include "format/perfdata/perfdata.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "event/perf_record.h"
#include "format/perfdata/build_ids.h"
#include "format/perfdata/layout.h"
#include "format/perfdata/raw_writer.h"

namespace cprof::format {
namespace {

using event::Event;
using perfdata::event_id;
using Bytes = std::vector<std::byte>;

// Keeps each event as its encoded bytes: they own what the events only view.
struct Recorder final : event::EventSink {
  event::SessionInfo info;
  std::vector<Bytes> events;
  std::vector<uint64_t> times, rounds;
  std::vector<size_t> kinds;
  uint64_t end_ns = 0;
  int begins = 0, finishes = 0;

  Result<void> begin(const event::SessionInfo& i) override {
    info = i;
    begins++;
    return {};
  }
  Result<void> on_event(const Event& event) override {
    Bytes bytes;
    EXPECT_TRUE(event::encode_record(event, 1, bytes));
    events.push_back(std::move(bytes));
    times.push_back(event::time_of(event));
    kinds.push_back(event.index());
    return {};
  }
  Result<void> on_round(uint64_t time) override {
    rounds.push_back(time);
    return {};
  }
  Result<void> finish(uint64_t end) override {
    end_ns = end;
    finishes++;
    return {};
  }
};

// A perf.data built piece by piece, in either byte order.
class FileBuilder {
 public:
  explicit FileBuilder(bool swap = false) : swap_(swap) {}
  template <typename T>
  FileBuilder& put(T value) {
    std::byte bytes[sizeof(T)];
    memcpy(bytes, &value, sizeof(T));
    if (swap_) std::reverse(bytes, bytes + sizeof(T));
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
    return *this;
  }
  FileBuilder& magic() {
    uint64_t magic;
    memcpy(&magic, perfdata::kMagic.data(), sizeof(magic));
    return put(magic);
  }
  FileBuilder& pipe_header() { return magic().put(perfdata::kPipeHeaderBytes); }
  FileBuilder& attr(uint64_t sample_type) {
    size_t start = bytes_.size();
    put(uint32_t{PERF_TYPE_SOFTWARE}).put(uint32_t{PERF_ATTR_SIZE_VER0}).put(uint64_t{PERF_COUNT_SW_CPU_CLOCK});
    put(uint64_t{1000000}).put(sample_type).put(uint64_t{0});
    // sample_id_all is bit 18; the other byte order allocates bits from the other end of each byte.
    for (int byte = 0; byte < 8; byte++) put(static_cast<uint8_t>(byte == 2 ? (swap_ ? 0x20 : 0x04) : 0));
    bytes_.resize(start + PERF_ATTR_SIZE_VER0);
    return *this;
  }
  FileBuilder& header_attr() {
    record_header(perfdata::kHeaderAttr, 0, 8 + PERF_ATTR_SIZE_VER0 + 8);
    return attr(kSampleType).put(uint64_t{1});
  }
  FileBuilder& record_header(uint32_t type, uint16_t misc, size_t size) {
    return put(type).put(misc).put(static_cast<uint16_t>(size));
  }
  FileBuilder& sample(uint64_t time, int32_t pid, uint64_t ip = 0x401000) {
    record_header(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 48);
    return put(uint64_t{1}).put(ip).put(pid).put(pid).put(time).put(uint64_t{1000000});
  }
  FileBuilder& exit_of(uint64_t time, int32_t pid) {
    record_header(PERF_RECORD_EXIT, 0, 8 + 24 + kTrailerBytes);
    return put(pid).put(1).put(pid).put(1).put(time).trailer(time, pid);
  }
  FileBuilder& comm(uint64_t time, int32_t pid, std::string_view name, bool exec) {
    record_header(PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0, 8 + 8 + 16 + kTrailerBytes);
    put(pid).put(pid);
    for (size_t i = 0; i < 16; i++) put(i < name.size() ? name[i] : char{0});
    return trailer(time, pid);
  }
  FileBuilder& round() { return record_header(perfdata::kFinishedRound, 0, 8); }
  FileBuilder& unknown(uint32_t type) { return record_header(type, 0, 16).put(uint64_t{0}); }
  FileBuilder& trailer(uint64_t time, int32_t pid) { return put(pid).put(pid).put(time).put(uint64_t{1}); }
  FileBuilder& append(const Bytes& more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }
  Bytes& bytes() { return bytes_; }

  static constexpr uint64_t kSampleType =
      PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;

 private:
  static constexpr size_t kTrailerBytes = 24;
  bool swap_;
  Bytes bytes_;
};

struct FileOptions {
  uint64_t claimed_data_bytes = UINT64_MAX;  // UINT64_MAX: the truth
  uint64_t feature_bits = 0;
  std::vector<std::pair<uint64_t, uint64_t>> feature_sections;
};

// The file form around the given records: header, one attr with one id, data, feature table.
Bytes file_form(const Bytes& records, bool swap, const FileOptions& options = {}) {
  FileBuilder file(swap);
  uint64_t ids_at = perfdata::kFileHeaderBytes, attr_at = ids_at + 8, entry = PERF_ATTR_SIZE_VER0 + 16;
  uint64_t data_at = attr_at + entry;
  uint64_t claimed = options.claimed_data_bytes == UINT64_MAX ? records.size() : options.claimed_data_bytes;
  file.magic().put(perfdata::kFileHeaderBytes).put(entry).put(attr_at).put(entry).put(data_at).put(claimed);
  file.put(uint64_t{0}).put(uint64_t{0}).put(options.feature_bits).put(uint64_t{0}).put(uint64_t{0}).put(uint64_t{0});
  file.put(uint64_t{1}).attr(FileBuilder::kSampleType).put(ids_at).put(uint64_t{8}).append(records);
  for (auto [offset, size] : options.feature_sections) file.put(offset).put(size);
  return file.bytes();
}

Input input_of(const Bytes& bytes, bool seekable) {
  Input input;
  input.name = "test.data";
  input.seekable = seekable;
  if (seekable) {
    input.fd = Fd(memfd_create("perfdata_test", MFD_CLOEXEC));
    EXPECT_TRUE(write_fully(input.fd.get(), bytes, "memfd"));
    return input;
  }
  // A pipe whose first bytes were taken already, as open_input() leaves it.
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  size_t head = std::min<size_t>(bytes.size(), 24);
  input.head.assign(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(head));
  input.fd = Fd(ends[0]);
  std::thread([bytes, head, out = ends[1]] {
    (void)write_fully(out, std::span(bytes).subspan(head), "pipe");
    close(out);
  }).detach();
  return input;
}

struct Played {
  Recorder recorder;
  Diagnostics diagnostics;
  Result<void> result;
};

Played play(const Bytes& bytes, bool seekable = true, const ReadOptions& options = {}) {
  Played played;
  auto source = perfdata_format().open_source(input_of(bytes, seekable), options);
  played.result = source->run(played.recorder, played.diagnostics);
  return played;
}

TEST(PerfData, SniffsBothByteOrdersAndNothingElse) {
  auto sniff = [](std::string_view text) { return perfdata_format().sniff(std::as_bytes(std::span(text))); };
  EXPECT_TRUE(sniff("PERFILE2........"));
  EXPECT_TRUE(sniff("2ELIFREP........"));
  EXPECT_FALSE(sniff("PERFFILE"));
  EXPECT_FALSE(sniff("PERF"));
  EXPECT_FALSE(sniff(""));
}

class BothOrders : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Order, BothOrders, testing::Bool());

// Records of two CPUs, each run in order, the file as a whole not.
TEST_P(BothOrders, RoundsPutTwoCpusInOrder) {
  FileBuilder records(GetParam());
  records.comm(1, 7, "a", true).sample(5, 7).sample(2, 8).sample(4, 8).round().sample(6, 7).round();
  for (bool seekable : {true, false}) {
    Played file = play(file_form(records.bytes(), GetParam()), seekable);
    ASSERT_TRUE(file.result) << file.result.error().message;
    EXPECT_EQ(file.recorder.times, (std::vector<uint64_t>{1, 2, 4, 5, 6}));
    FileBuilder pipe(GetParam());
    pipe.pipe_header().header_attr().append(records.bytes());
    Played piped = play(pipe.bytes(), seekable);
    ASSERT_TRUE(piped.result) << piped.result.error().message;
    EXPECT_EQ(piped.recorder.events, file.recorder.events);
    EXPECT_EQ(piped.recorder.finishes, 1);
    ASSERT_EQ(piped.recorder.info.metrics.size(), 1u);
    EXPECT_EQ(piped.recorder.info.metrics[0].name, "cpu-clock");
    EXPECT_TRUE(piped.recorder.info.metrics[0].is_time);
    EXPECT_EQ(piped.recorder.info.metrics[0].period, 1000000u);
  }
}

TEST(PerfData, UnsortedSamplesWithoutRoundsAreSorted) {
  FileBuilder records;
  records.sample(5, 7).sample(3, 7).sample(4, 7);
  EXPECT_EQ(play(file_form(records.bytes(), false)).recorder.times, (std::vector<uint64_t>{3, 4, 5}));
}

// The exit lies first in the file; the samples before it and those of the reused pid keep their sides.
TEST(PerfData, ExitAndReusedPidStayApart) {
  FileBuilder records;
  records.exit_of(6, 100);
  for (uint64_t t = 1; t <= 5; t++) records.sample(t, 100);
  records.sample(8, 100).sample(9, 100).comm(7, 100, "b", true).round();
  Played played = play(file_form(records.bytes(), false));
  constexpr size_t kSample = 0, kExit = 5, kComm = 3;
  EXPECT_EQ(played.recorder.kinds, (std::vector<size_t>{kSample, kSample, kSample, kSample, kSample, kExit, kComm, kSample, kSample}));
}

TEST(PerfData, UnfinishedAndCutFilesGiveAllWholeRecords) {
  FileBuilder records;
  records.sample(1, 7).sample(2, 7).sample(3, 7);
  Played unfinished = play(file_form(records.bytes(), false, {.claimed_data_bytes = 0, .feature_sections = {}}));
  ASSERT_TRUE(unfinished.result);
  EXPECT_EQ(unfinished.recorder.times.size(), 3u);
  EXPECT_EQ(unfinished.diagnostics.count("perfdata_not_finished"), 1u);
  Bytes cut = file_form(records.bytes(), false);
  cut.resize(cut.size() - 20);
  Played shorter = play(cut);
  ASSERT_TRUE(shorter.result);
  EXPECT_EQ(shorter.recorder.times.size(), 2u);
  EXPECT_EQ(shorter.diagnostics.count("perfdata_cut"), 1u);
  EXPECT_EQ(shorter.recorder.finishes, 1);
}

TEST(PerfData, UnknownRecordsAndFeaturesAreSkippedAndCounted) {
  FileBuilder records;
  records.sample(1, 7);
  for (uint32_t type = 84; type <= 90; type++) records.unknown(type);
  records.unknown(40).sample(2, 7);
  FileOptions options{.feature_bits = uint64_t{1} << 63, .feature_sections = {{0, 8}}};
  Played played = play(file_form(records.bytes(), false, options));
  ASSERT_TRUE(played.result);
  EXPECT_EQ(played.recorder.times.size(), 2u);
  ASSERT_EQ(played.diagnostics.count("records_unknown"), 8u);
  const Diagnostic& skipped = played.diagnostics.entries().at("records_unknown");
  EXPECT_EQ(skipped.example, "types 40, 84, 85, 86, 87, 88, 89, 90");
  EXPECT_EQ(skipped.severity, Severity::kError) << "said in one line";
}

// One entry of the build-id table: a record header, a pid, the id, its length or zeros, the name.
Bytes build_id_entry(bool swap, std::string_view path, size_t id_bytes, bool with_size, char first) {
  FileBuilder entry(swap);
  size_t name_bytes = (path.size() + 8) / 8 * 8;
  entry.record_header(perfdata::kHeaderBuildId, with_size ? 0x8000 : 0, 8 + 4 + 24 + name_bytes).put(int32_t{-1});
  for (size_t i = 0; i < 24; i++) entry.put(i < id_bytes ? static_cast<char>(first + i) : i == 20 && with_size ? static_cast<char>(id_bytes) : char{0});
  for (size_t i = 0; i < name_bytes; i++) entry.put(i < path.size() ? path[i] : char{0});
  return entry.bytes();
}

TEST_P(BothOrders, BuildIdTable) {
  perfdata::BuildIds ids;
  Bytes table;
  for (const Bytes& entry : {build_id_entry(GetParam(), "/bin/a", 20, false, 1), build_id_entry(GetParam(), "/bin/md5", 16, false, 1),
                             build_id_entry(GetParam(), "/bin/short", 8, true, 1), build_id_entry(GetParam(), "/bin/zero", 0, false, 1),
                             build_id_entry(GetParam(), "/bin/two", 20, true, 1), build_id_entry(GetParam(), "/bin/two", 20, true, 2)})
    table.insert(table.end(), entry.begin(), entry.end());
  ids.add_table(table, GetParam());
  EXPECT_EQ(ids.find("/bin/a").size(), 20u);
  EXPECT_EQ(ids.find("/bin/a")[19], std::byte{20});
  EXPECT_EQ(ids.find("/bin/md5").size(), 16u) << "older tables fill up with zeros";
  EXPECT_EQ(ids.find("/bin/short").size(), 8u);
  EXPECT_TRUE(ids.find("/bin/zero").empty());
  EXPECT_TRUE(ids.find("/bin/two").empty()) << "two builds of one path: which was mapped is not told";
  EXPECT_TRUE(ids.find("/bin/none").empty());
  for (size_t cut = 0; cut < table.size(); cut++) perfdata::BuildIds().add_table(std::span(table).first(cut), GetParam());
}

TEST(PerfData, SectionFarOutsideTheFileIsNamed) {
  FileBuilder records;
  records.sample(1, 7);
  FileOptions options{.feature_bits = uint64_t{1} << 7, .feature_sections = {{15762598695796815u, 3u << 30}}};
  Played played = play(file_form(records.bytes(), false, options));
  ASSERT_TRUE(played.result);
  EXPECT_EQ(played.recorder.times.size(), 1u);
  ASSERT_EQ(played.diagnostics.count("perfdata_section_outside"), 1u);
  EXPECT_NE(played.diagnostics.entries().at("perfdata_section_outside").example.find("section 7 lies outside the file"), std::string::npos);
}

TEST(PerfData, RecordWithoutASizeEndsTheReading) {
  FileBuilder records;
  records.sample(1, 7).record_header(PERF_RECORD_SAMPLE, 0, 0).sample(2, 7);
  Played played = play(file_form(records.bytes(), false));
  ASSERT_TRUE(played.result);
  EXPECT_EQ(played.recorder.times.size(), 1u);
  EXPECT_EQ(played.diagnostics.count("perfdata_bad_record"), 1u);
}

TEST(PerfData, NonsenseIsRefusedInOneLine) {
  FileBuilder empty_pipe;
  empty_pipe.pipe_header();
  FileBuilder far_attrs;
  far_attrs.magic().put(perfdata::kFileHeaderBytes).put(uint64_t{80}).put(uint64_t{1} << 60).put(uint64_t{80});
  for (int i = 0; i < 8; i++) far_attrs.put(uint64_t{0});
  Bytes text(200, std::byte{'x'});
  for (const Bytes& bytes : {Bytes{}, Bytes(5), text, empty_pipe.bytes(), far_attrs.bytes()}) {
    Played played = play(bytes);
    ASSERT_FALSE(played.result);
    EXPECT_NE(played.result.error().message.find("test.data"), std::string::npos);
    EXPECT_EQ(played.result.error().message.find('\n'), std::string::npos);
    EXPECT_EQ(played.recorder.begins, 0);
  }
}

Bytes compressed_file(const Bytes& records, size_t part_bytes) {
  Bytes packed(ZSTD_compressBound(records.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), records.data(), records.size(), 1));
  FileBuilder file;
  file.pipe_header().header_attr();
  for (size_t at = 0; at < packed.size(); at += part_bytes) {
    size_t size = std::min(part_bytes, packed.size() - at);
    file.record_header(perfdata::kCompressed, 0, 8 + size);
    file.append(Bytes(packed.begin() + static_cast<ptrdiff_t>(at), packed.begin() + static_cast<ptrdiff_t>(at + size)));
  }
  return file.bytes();
}

TEST(PerfData, CompressedRecordsMayBeCutAnywhere) {
  FileBuilder records;
  std::mt19937_64 random(5);
  for (uint64_t t = 1; t <= 2000; t++) records.sample(t, 7, random());
  for (size_t part : {7u, 1000u, 60000u}) {
    Played played = play(compressed_file(records.bytes(), part));
    ASSERT_TRUE(played.result) << played.result.error().message;
    EXPECT_EQ(played.recorder.times.size(), 2000u);
  }
}

TEST(PerfData, CompressedBombStopsAtTheLimit) {
  Bytes zeros(40u << 20);
  FileBuilder header;
  header.record_header(PERF_RECORD_NAMESPACES, 0, 65528);
  for (size_t at = 0; at + 65528 <= zeros.size(); at += 65528) std::copy_n(header.bytes().begin(), 8, zeros.begin() + static_cast<ptrdiff_t>(at));
  Played played = play(compressed_file(zeros, 60000));
  ASSERT_FALSE(played.result);
  EXPECT_NE(played.result.error().message.find("--max-input"), std::string::npos);
}

// --- our own captures ---

event::SessionInfo sample_session() {
  event::SessionInfo info{.arch = event::Arch::kX86_64, .metrics = {}, .command = "make -j 8", .hostname = "host",
                          .kernel_release = "6.1.0", .cpus_online = 8, .start_ns = 100, .start_realtime_ns = 200,
                          .has_switches = true, .has_off_cpu = true, .has_kernel_stacks = false, .kernel_stacks_missing = "not allowed"};
  info.metrics.push_back({.name = "cpu-clock", .unit = "nanoseconds", .type = 1, .config = 0, .period = 1001001, .freq_hz = 0, .is_time = true});
  info.metrics.push_back({.name = "sched:sched_switch", .unit = "count", .type = 2, .config = 300, .period = 1, .freq_hz = 0});
  info.metrics.push_back({.name = "context-switches", .unit = "count", .type = 1, .config = 3, .period = 1, .is_switch_stacks = true});
  return info;
}

std::vector<std::string> describe(const event::SessionInfo& info) {
  std::vector<std::string> lines = {info.command, info.hostname, info.kernel_release, info.kernel_stacks_missing,
                                    std::to_string(info.cpus_online), std::to_string(info.start_ns),
                                    std::to_string(info.start_realtime_ns), std::to_string(info.has_off_cpu * 4 + info.has_switches * 2 + info.has_kernel_stacks)};
  for (const event::Metric& m : info.metrics)
    lines.push_back(m.name + m.unit + std::to_string(m.type) + "/" + std::to_string(m.config) + "/" + std::to_string(m.period) + "/" +
                    std::to_string(m.freq_hz) + "/" + std::to_string(m.is_time * 2 + m.is_switch_stacks));
  return lines;
}

Bytes capture(const event::SessionInfo& info, const std::function<void(RawWriter&)>& write) {
  std::string path = testing::TempDir() + "/capture." + std::to_string(getpid());
  auto out = OutputFile::create(path);
  EXPECT_TRUE(out);
  RawWriter writer(std::move(*out));
  EXPECT_TRUE(writer.begin(info));
  write(writer);
  EXPECT_TRUE(writer.finish(999));
  auto fd = open_read(path);
  auto bytes = read_all(fd->get(), 1 << 30, path);
  unlink(path.c_str());
  return *bytes;
}

TEST(RawCapture, ReplayIsTheSameRun) {
  std::vector<uint64_t> words = {1, 2, 3, 4};
  Bytes stack(100, std::byte{7});
  Recorder live;
  auto emit = [&](RawWriter& writer, const Event& event) {
    ASSERT_TRUE(writer.on_event(event));
    ASSERT_TRUE(live.on_event(event));
  };
  Bytes bytes = capture(sample_session(), [&](RawWriter& writer) {
    event::Registers registers{2, 0xf, words};
    emit(writer, event::Comm{.time_ns = 1, .task = {5, 5}, .name = "make", .exec = true});
    emit(writer, event::Mmap{.time_ns = 2, .task = {5, 5}, .start = 0x1000, .length = 0x1000, .file = {8, 1, 9, 0}, .path = "/bin/make"});
    emit(writer, event::Sample{.time_ns = 3, .task = {5, 5}, .metric = 0, .kernel_chain = words, .snapshot = event::Snapshot{registers, stack, 16384}});
    emit(writer, event::Sample{.time_ns = 4, .task = {5, 5}, .metric = 1, .user_chain = words});
    ASSERT_TRUE(writer.on_round(4));
    ASSERT_TRUE(writer.on_round(5));  // nothing since: not written
    emit(writer, event::StackMemory{.time_ns = 5, .task = {5, 5}, .address = 0x7000, .bytes = stack});
    emit(writer, event::Sample{.time_ns = 6, .task = {5, 5}, .metric = 0, .snapshot = event::Snapshot{registers, stack, 65528}});
    emit(writer, event::Sample{.time_ns = 7, .task = {2, 2}, .metric = 0, .in_kernel = true, .snapshot = event::Snapshot{{}, {}, 16384}});
    emit(writer, event::Lost{.time_ns = 8, .cpu = 1, .count = 3});
    emit(writer, event::StackDef{.time_ns = 9, .task = {5, 5}, .id = 7, .kernel_chain = words, .user_chain = words,
                                 .user_end = event::WalkEnd::kComplete});
    emit(writer, event::Sample{.time_ns = 10, .task = {5, 6}, .metric = 1, .stack_id = 7});
    emit(writer, event::Sample{.time_ns = 11, .task = {5, 5}, .metric = 0, .stack_id = 8});
    emit(writer, event::Sample{.time_ns = 11, .task = {5, 5}, .metric = 1, .period = 4, .repeats_stack = true});
    emit(writer, event::SwitchOut{.time_ns = 12, .task = {5, 5}, .cpu = 1, .stack_id = 7});
    emit(writer, event::Wakeup{.time_ns = 13, .task = {5, 5}, .waker = {9, 10}});
    emit(writer, event::SwitchIn{.time_ns = 14, .task = {5, 5}, .cpu = 1, .woken_ns = 13, .waker = {9, 10}});
    emit(writer, event::Count{.time_ns = 15, .task = {5, 5}, .metric = 1, .samples = 3, .weight = 30, .stack_id = 7});
  });
  for (bool seekable : {true, false}) {
    Played replay = play(bytes, seekable);
    ASSERT_TRUE(replay.result) << replay.result.error().message;
    EXPECT_EQ(replay.recorder.events, live.events);
    EXPECT_EQ(replay.recorder.rounds, (std::vector<uint64_t>{4}));
    EXPECT_EQ(replay.recorder.end_ns, 999u);
    EXPECT_EQ(describe(replay.recorder.info), describe(sample_session()));
    EXPECT_EQ(replay.diagnostics.entries().size(), 0u);
  }
}

// What perf reads: samples that have their chain.
TEST(RawCapture, OtherReadersFindTheChainOfAStackId) {
  std::vector<uint64_t> user = {0x401000, 0x402000}, kernel = {0xffffffff81000010};
  perfdata::StackChains chains(8);
  chains.define({.task = {5, 5}, .id = 7, .kernel_chain = kernel, .user_chain = user});
  event::Sample sample = chains.with_chains({.task = {5, 6}, .stack_id = 7});
  EXPECT_TRUE(std::ranges::equal(sample.user_chain, user));
  EXPECT_TRUE(std::ranges::equal(sample.kernel_chain, kernel));
  EXPECT_TRUE(chains.with_chains({.task = {6, 6}, .stack_id = 7}).user_chain.empty()) << "another process";
  chains.define({.task = {5, 5}, .id = 7, .user_chain = kernel});
  EXPECT_EQ(chains.with_chains({.task = {5, 6}, .stack_id = 7}).user_chain.size(), 1u) << "defined again";
  for (uint64_t id = 1; id < 100; id++) chains.define({.task = {5, 5}, .id = id, .user_chain = user});
  EXPECT_TRUE(chains.with_chains({.task = {5, 5}, .stack_id = 7}).user_chain.empty()) << "memory is bounded";
  chains.forget(5);
  EXPECT_TRUE(chains.with_chains({.task = {5, 5}, .stack_id = 99}).user_chain.empty());
}

TEST(RawCapture, LongStackMemoryIsSplit) {
  Bytes memory(100000, std::byte{1});
  Bytes bytes = capture(sample_session(), [&](RawWriter& writer) {
    ASSERT_TRUE(writer.on_event(event::StackMemory{.time_ns = 1, .task = {5, 5}, .address = 0x1000, .bytes = memory}));
    EXPECT_EQ(writer.dropped(), 0u);
  });
  EXPECT_EQ(play(bytes).recorder.events.size(), 4u);
}

TEST(RawCapture, EmptyRunReplays) {
  Played played = play(capture(sample_session(), [](RawWriter&) {}));
  ASSERT_TRUE(played.result);
  EXPECT_EQ(played.recorder.begins, 1);
  EXPECT_EQ(played.recorder.end_ns, 999u);
}

// Flips and cuts of a capture and of a file: any result, no crash (the sanitizers watch), begin and finish in pairs.
TEST(PerfData, DamagedFilesAreContained) {
  FileBuilder records;
  records.comm(1, 7, "a", true).sample(5, 7).sample(2, 8).round().exit_of(9, 7);
  std::vector<uint64_t> words = {1, 2};
  event::StackDef def{.time_ns = 1, .task = {5, 5}, .id = 4, .kernel_chain = words, .user_chain = words};
  Bytes own = capture(sample_session(), [&](RawWriter& writer) {
    ASSERT_TRUE(writer.on_event(def));
    for (uint64_t t = 1; t < 20; t++) {
      ASSERT_TRUE(writer.on_event(event::Sample{.time_ns = t, .task = {5, 5}, .metric = 0, .user_chain = words}));
      ASSERT_TRUE(writer.on_event(event::Sample{.time_ns = t, .task = {5, 5}, .metric = 0, .stack_id = 4}));
      ASSERT_TRUE(writer.on_event(event::Count{.time_ns = t, .task = {5, 5}, .samples = t, .weight = t, .stack_id = 4}));
    }
  });
  std::mt19937_64 random(9);
  for (const Bytes& good : {file_form(records.bytes(), false), own, compressed_file(records.bytes(), 50)}) {
    for (int round = 0; round < 400; round++) {
      Bytes bad = good;
      for (uint64_t flips = random() % 4; flips < 4; flips++) bad[random() % bad.size()] = static_cast<std::byte>(random());
      if (random() % 3 == 0) bad.resize(random() % bad.size());
      Played played = play(bad);
      EXPECT_EQ(played.recorder.begins, played.recorder.finishes);
    }
  }
}

}  // namespace
}  // namespace cprof::format
