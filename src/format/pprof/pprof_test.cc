#include "format/pprof/pprof.h"

#include <memory>
#include <random>
#include <set>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "format/folded/folded.h"
#include "format/gzip.h"
#include "format/pprof/frame_filter.h"
#include "format/pprof/pprof_fields.h"
#include "format/pprof/pprof_file.h"
#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using namespace testing;
using protozero::pbf_writer;

std::string written(const Profile& profile, std::string_view ending = ".pb") {
  auto bytes = write_bytes(pprof_format(), profile, ending);
  EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().message);
  return bytes.value_or("");
}

std::string folded(const Profile& profile, const WriteOptions& options = {}) {
  return write_bytes(folded_format(), profile, ".folded", options).value_or("");
}

// With the bytes that its texts point into.
struct Parsed : PprofFile {
  std::shared_ptr<const std::string> bytes;
};

Parsed parsed(std::string_view bytes) {
  Parsed result;
  result.bytes = std::make_shared<const std::string>(bytes);
  auto file = parse_pprof(as_span(*result.bytes), "test");
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  if (file) static_cast<PprofFile&>(result) = std::move(*file);
  return result;
}

std::string error_of(std::string_view bytes) {
  auto profile = read_bytes(pprof_format(), bytes);
  return profile ? "no error" : profile.error().message;
}

// A pprof file put together field by field.
class File {
 public:
  int64_t text(std::string_view t) {
    for (size_t i = 0; i < texts_.size(); ++i)
      if (texts_[i] == t) return static_cast<int64_t>(i);
    texts_.emplace_back(t);
    return static_cast<int64_t>(texts_.size() - 1);
  }
  File& type(std::string_view name, std::string_view unit, uint32_t field = pb::Profile::kSampleType) {
    return message(field, {{1, text(name)}, {2, text(unit)}});
  }
  File& message(uint32_t field, std::vector<std::pair<uint32_t, int64_t>> numbers, const std::string& rest = "") {
    std::string m;
    for (auto [tag, value] : numbers) pbf_writer(m).add_int64(tag, value);
    m += rest;
    pbf_writer(bytes_).add_message(field, m);
    return *this;
  }
  File& number(uint32_t field, int64_t value) {
    pbf_writer(bytes_).add_int64(field, value);
    return *this;
  }
  File& mapping(int64_t id, int64_t start, int64_t limit, std::string_view path) {
    return message(pb::Profile::kMapping, {{1, id}, {2, start}, {3, limit}, {5, text(path)}});
  }
  File& function(int64_t id, std::string_view name) {
    return message(pb::Profile::kFunction, {{1, id}, {2, text(name)}, {3, text(name)}});
  }
  File& location(int64_t id, int64_t mapping, int64_t address, std::vector<int64_t> functions = {}) {
    std::string lines;
    for (int64_t f : functions) {
      std::string line;
      pbf_writer(line).add_int64(1, f);
      pbf_writer(lines).add_message(pb::Location::kLine, line);
    }
    return message(pb::Profile::kLocation, {{1, id}, {2, mapping}, {3, address}}, lines);
  }
  File& sample(std::vector<uint64_t> leaf_first, std::vector<int64_t> values, const std::string& labels = "") {
    std::string m;
    pbf_writer(m).add_packed_uint64(1, leaf_first.begin(), leaf_first.end());
    pbf_writer(m).add_packed_int64(2, values.begin(), values.end());
    m += labels;
    pbf_writer(bytes_).add_message(pb::Profile::kSample, m);
    return *this;
  }
  std::string bytes() const {
    std::string all = bytes_;
    for (const std::string& t : texts_) pbf_writer(all).add_string(pb::Profile::kStringTable, t);
    return all;
  }

 private:
  std::vector<std::string> texts_ = {""};
  std::string bytes_;
};

// Rules that readers of pprof, and Perfetto's, rely on.
void check_rules(const std::string& bytes) {
  const Parsed file = parsed(bytes);
  ASSERT_FALSE(file.sample_types.empty());
  ASSERT_FALSE(file.strings.empty());
  EXPECT_EQ(file.strings[0], "");
  std::set<uint64_t> mappings, functions, locations;
  std::set<std::pair<uint64_t, uint64_t>> places;
  for (const auto& m : file.mappings) {
    EXPECT_TRUE(m.id != 0 && mappings.insert(m.id).second);
    EXPECT_LE(m.start, m.limit);
    EXPECT_NE(m.filename, 0);
  }
  for (const auto& f : file.functions) EXPECT_TRUE(f.id != 0 && functions.insert(f.id).second);
  for (const auto& l : file.locations) {
    EXPECT_TRUE(l.id != 0 && locations.insert(l.id).second);
    ASSERT_TRUE(mappings.contains(l.mapping_id));
    EXPECT_NE(l.address, 0u);
    EXPECT_TRUE(places.emplace(l.mapping_id, l.address).second);
    for (const auto& m : file.mappings) {
      const bool is_inside = m.id != l.mapping_id || !m.limit || (l.address >= m.start && l.address < m.limit);
      EXPECT_TRUE(is_inside);
    }
  }
  for (const auto& line : file.lines) EXPECT_TRUE(functions.contains(line.function_id));
  auto walked = for_each_pprof_sample(as_span(bytes), "test", [&](const PprofSample& s) -> Result<void> {
    EXPECT_EQ(s.values.size(), file.sample_types.size());
    EXPECT_FALSE(s.locations.empty());
    for (uint64_t id : s.locations) EXPECT_TRUE(locations.contains(id));
    return {};
  });
  EXPECT_TRUE(walked);
  for (protozero::pbf_reader reader(bytes.data(), bytes.size()); reader.next(); reader.skip())
    EXPECT_LT(reader.tag(), uint32_t{pb::Profile::kDocUrl});
}

std::string_view text_of(const PprofFile& file, int64_t index) { return file.strings[static_cast<size_t>(index)]; }

TEST(PprofWriter, RecordingHasThreeValues) {
  const std::string bytes = written(example_recording());
  check_rules(bytes);
  const Parsed file = parsed(bytes);
  ASSERT_EQ(file.sample_types.size(), 3u);
  const char* expected[][2] = {{"samples", "count"}, {"cpu", "nanoseconds"}, {"wall", "nanoseconds"}};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(text_of(file, file.sample_types[i].type), expected[i][0]);
    EXPECT_EQ(text_of(file, file.sample_types[i].unit), expected[i][1]);
  }
  EXPECT_EQ(text_of(file, file.default_sample_type), "cpu");
  EXPECT_EQ(text_of(file, file.period_type.type), "cpu");
  EXPECT_EQ(file.period, 1'000'000);
  EXPECT_EQ(file.time_nanos, 1'700'000'000'000'000'000);
  EXPECT_EQ(file.duration_nanos, 100'000'000);
}

// verifies: D2
TEST(PprofWriter, InlinedLinesAreInnermostFirst) {
  const Parsed file = parsed(written(example_recording()));
  std::vector<std::string_view> names;
  std::vector<int64_t> numbers;
  for (const auto& l : file.locations) {
    if (l.line_count != 3) continue;
    for (uint32_t i = 0; i < 3; ++i) {
      const auto& line = file.lines[l.first_line + i];
      numbers.push_back(line.line);
      for (const auto& f : file.functions)
        if (f.id == line.function_id) names.push_back(text_of(file, f.name));
    }
  }
  EXPECT_EQ(names, (std::vector<std::string_view>{"a", "b", "c"}));
  EXPECT_EQ(numbers, (std::vector<int64_t>{3, 7, 9}));
}

TEST(PprofWriter, KeepsMappingsAndMarksWhatTheyHave) {
  const Parsed file = parsed(written(example_recording()));
  bool found = false;
  for (const auto& m : file.mappings) {
    if (text_of(file, m.filename) != "/usr/bin/app") continue;
    found = true;
    EXPECT_EQ(text_of(file, m.build_id), "00aabbcc");
    EXPECT_EQ(m.start, 0x400000u);
    EXPECT_EQ(m.limit, 0x500000u);
    EXPECT_EQ(m.offset, 0x1000u);
    EXPECT_TRUE(m.has_functions && m.has_filenames && m.has_line_numbers && m.has_inline_frames);
  }
  EXPECT_TRUE(found);
}

TEST(PprofWriter, TwiceIsIdenticalAndGzipHasNoTime) {
  EXPECT_EQ(written(example_recording(), ".pb"), written(example_recording(), ".pb"));
  const std::string packed = written(example_recording(), ".pb.gz");
  EXPECT_EQ(packed, written(example_recording(), ".pb.gz"));
  ASSERT_TRUE(is_gzip(as_span(packed)));
  EXPECT_EQ(packed.substr(4, 4), std::string(4, '\0'));
}

TEST(Pprof, ExportAndImportAreEqual) {
  for (std::string_view ending : {".pb", ".pb.gz", ".pprof"}) {
    const std::string bytes = written(example_recording(), ending);
    auto profile = read_bytes(pprof_format(), bytes);
    ASSERT_TRUE(profile) << profile.error().message;
    EXPECT_EQ(folded(*profile), folded(example_recording()));
    WriteOptions by_thread;
    by_thread.by = GroupBy::kThread;
    EXPECT_EQ(folded(*profile, by_thread), folded(example_recording(), by_thread));
    EXPECT_EQ(total(*profile, "samples"), 6);
    EXPECT_EQ(total(*profile, "cpu"), 6'000'000);
    auto again = read_bytes(pprof_format(), written(*profile));
    ASSERT_TRUE(again);
    EXPECT_EQ(dump(*again), dump(*profile));
    EXPECT_EQ(written(*again), written(*profile));
  }
}

TEST(Pprof, FoldedStacksSurvive) {
  const std::string stacks = "main;a 5\nmain;a;b_[k] 7\nmain;c_[j] 9007199254740993\n";
  auto profile = read_bytes(folded_format(), stacks);
  const std::string bytes = written(*profile);
  check_rules(bytes);
  auto back = read_bytes(pprof_format(), bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(folded(*back), stacks);
}

// verifies: D2
TEST(Pprof, UnsymbolizedLocationsKeepTheirAddresses) {
  Recording r;
  auto a = r.code(0x10, {}, false), b = r.code(0x20, {}, false), c = r.code(0x30, {}, true);
  r.sample(r.main, 0, {c, b, a});
  const std::string bytes = written(r.builder.take());
  check_rules(bytes);
  const Parsed file = parsed(bytes);
  ASSERT_EQ(file.locations.size(), 3u);
  EXPECT_EQ(file.locations[0].address, 0x400010u);
  EXPECT_EQ(file.locations[2].address, 0x40002fu);  // inside the call
  EXPECT_TRUE(file.lines.empty());
  auto back = read_bytes(pprof_format(), bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(folded(*back), "app;[app+0x102f];[app+0x1020];[app+0x1010] 1\n");
}

TEST(Pprof, LocationsOfOneAddressAreToldApart) {
  Recording r;
  auto a = r.code(0x10, {r.line("old")}, false), b = r.code(0x10, {r.line("new")}, false);
  auto outside = r.code(0x9000000, {r.line("far")}, false);
  r.sample(r.main, 0, {a});
  r.sample(r.main, 1, {b});
  r.sample(r.main, 2, {outside});
  check_rules(written(r.builder.take()));
}

TEST(Pprof, StacklessSamplesCount) {
  auto profile = read_bytes(pprof_format(), File().type("n", "count").sample({}, {40}).sample({1}, {60}).location(1, 0, 9).bytes());
  ASSERT_TRUE(profile);
  EXPECT_EQ(total(*profile, "n"), 100);
  const std::string bytes = written(*profile);
  check_rules(bytes);
  EXPECT_EQ(total(*read_bytes(pprof_format(), bytes), "n"), 100);
}

TEST(PprofReader, SymbolsWithoutMappings) {
  File f;
  f.type("samples", "count").function(1, "leaf").function(2, "root").location(1, 0, 0, {1}).location(2, 0, 0, {2});
  auto profile = read_bytes(pprof_format(), f.sample({1, 2}, {3}).bytes());
  ASSERT_TRUE(profile);
  EXPECT_EQ(folded(*profile), "root;leaf 3\n");
  EXPECT_TRUE(profile->mappings.empty());
  check_rules(written(*profile));
}

TEST(PprofReader, NoSamplesIsNoError) {
  auto profile = read_bytes(pprof_format(), File().type("samples", "count").bytes());
  ASSERT_TRUE(profile);
  EXPECT_TRUE(profile->aggregates.empty());
  EXPECT_TRUE(read_bytes(pprof_format(), written(*profile)));
}

TEST(PprofReader, RefusesWithTheId) {
  auto with = [](auto&& add) {
    File f;
    f.type("n", "count").function(1, "f").mapping(1, 0x1000, 0x2000, "/b").location(1, 1, 0x1001, {1});
    add(f);
    return error_of(f.bytes());
  };
  EXPECT_EQ(with([](File& f) { f.function(1, "g"); }), "test-input: two functions have the id 1");
  EXPECT_EQ(with([](File& f) { f.mapping(1, 0, 0, "/c"); }), "test-input: two mappings have the id 1");
  EXPECT_EQ(with([](File& f) { f.location(1, 1, 5); }), "test-input: two locations have the id 1");
  EXPECT_EQ(with([](File& f) { f.function(0, "g"); }), "test-input: a function has the id 0");
  EXPECT_EQ(with([](File& f) { f.sample({1, 9}, {1}); }), "test-input: sample 1 names location 9, which is not in the file");
  EXPECT_EQ(with([](File& f) { f.sample({1}, {1, 2}); }), "test-input: sample 1 has 2 values for 1 sample types");
  EXPECT_NE(with([](File& f) { f.number(pb::Profile::kComment, 99); }).find("string 99 is not in the table"), std::string::npos);
}

TEST(PprofReader, MissingFunctionsKeepTheirPlace) {
  File f;
  f.type("n", "count").function(1, "root").location(1, 0, 1, {7}).location(2, 0, 2, {1});
  auto profile = read_bytes(pprof_format(), f.sample({1, 2}, {5}).bytes());
  ASSERT_TRUE(profile);
  EXPECT_EQ(folded(*profile), "root;[missing function 7] 5\n");
  EXPECT_EQ(profile->diagnostics.count("pprof_missing_functions"), 1u);
}

TEST(PprofReader, NegativeValues) {
  File f;
  f.type("inuse_space", "bytes").function(1, "f").function(2, "g").location(1, 0, 1, {1}).location(2, 0, 2, {2});
  auto profile = read_bytes(pprof_format(), f.sample({1}, {10}).sample({2}, {-4}).bytes());
  ASSERT_TRUE(profile);
  EXPECT_EQ(total(*profile, "inuse_space"), 6);
  EXPECT_EQ(dump(*read_bytes(pprof_format(), written(*profile))), dump(*profile));
}

File drop_example(std::string_view drop, std::string_view keep) {
  File f;
  f.type("n", "count").function(1, "alloc").function(2, "reflect").function(3, "runtime.call32").function(4, "main");
  for (int i = 1; i <= 4; ++i) f.location(i, 0, i, {i});
  f.sample({1, 2, 3, 4}, {5});
  if (!drop.empty()) f.number(pb::Profile::kDropFrames, f.text(drop));
  if (!keep.empty()) f.number(pb::Profile::kKeepFrames, f.text(keep));
  return f;
}

TEST(PprofReader, DropAndKeepFrames) {
  auto stacks = [](std::string_view drop, std::string_view keep) {
    auto profile = read_bytes(pprof_format(), drop_example(drop, keep).bytes());
    return profile ? folded(*profile) : profile.error().message;
  };
  EXPECT_EQ(stacks("", ""), "main;runtime.call32;reflect;alloc 5\n");
  EXPECT_EQ(stacks("runtime\\..*", "runtime\\.call32"), "main;runtime.call32;reflect;alloc 5\n");
  EXPECT_EQ(stacks("runtime\\..*", ""), "[unknown];main 5\n");
  EXPECT_EQ(stacks("alloc|main", ""), "main;runtime.call32;reflect 5\n");  // never the whole stack
  EXPECT_EQ(stacks("reflec", ""), "main;runtime.call32;reflect;alloc 5\n");  // a full match, not a part
}

TEST(PprofReader, DropsInlinedLines) {
  File f;
  f.type("n", "count").function(1, "malloc").function(2, "work").function(3, "main").location(1, 0, 1, {1, 2}).location(2, 0, 2, {3});
  f.sample({1, 2}, {1}).number(pb::Profile::kDropFrames, f.text("mal.*"));
  EXPECT_EQ(folded(*read_bytes(pprof_format(), f.bytes())), "main;work 1\n");
}

// verifies: D2
TEST(PprofReader, LabelsAndRun) {
  File f;
  std::string labels;
  auto label = [&](std::vector<std::pair<uint32_t, int64_t>> fields) {
    std::string m;
    for (auto [tag, value] : fields) pbf_writer(m).add_int64(tag, value);
    pbf_writer(labels).add_message(pb::Sample::kLabel, m);
  };
  label({{1, f.text("request")}, {2, f.text("GET /")}});
  label({{1, f.text("bytes")}, {3, 4096}, {4, f.text("bytes")}});
  label({{1, f.text("tid")}, {3, 77}});
  f.type("alloc_objects", "count").type("alloc_space", "bytes").function(1, "f").location(1, 0, 1, {1});
  f.sample({1}, {1, 4096}, labels).sample({1}, {2, 8192});
  f.number(pb::Profile::kComment, f.text("hello")).number(pb::Profile::kDefaultSampleType, f.text("alloc_objects"));
  f.type("space", "bytes", pb::Profile::kPeriodType).number(pb::Profile::kPeriod, 524288).number(pb::Profile::kTimeNanos, 5).number(pb::Profile::kDurationNanos, 9);
  auto profile = read_bytes(pprof_format(), f.bytes());
  ASSERT_TRUE(profile);
  EXPECT_EQ(dump(*profile),
            "f@0:; alloc_objects/count=1 tid=77 request=GET / bytes=4096bytes tid=77\n"
            "f@0:; alloc_objects/count=2\n"
            "f@0:; alloc_space/bytes=4096 tid=77 request=GET / bytes=4096bytes tid=77\n"
            "f@0:; alloc_space/bytes=8192\n");
  EXPECT_EQ(profile->run.comments, std::vector<std::string>{"hello"});
  EXPECT_EQ(profile->text(profile->run.default_metric), "alloc_objects");
  const Parsed file = parsed(written(*profile));
  EXPECT_EQ(file.period, 524288);
  EXPECT_EQ(text_of(file, file.period_type.type), "space");
  EXPECT_EQ(file.time_nanos, 5);
  EXPECT_EQ(file.duration_nanos, 9);
  ASSERT_EQ(file.comments.size(), 1u);
  EXPECT_EQ(dump(*read_bytes(pprof_format(), written(*profile))), dump(*profile));
}

TEST(PprofReader, TruncationIsOneLineWithTheByte) {
  const std::string raw = written(example_recording()), packed = written(example_recording(), ".pb.gz");
  EXPECT_NE(error_of(raw.substr(0, raw.size() - 3)).find("cut off: the field at byte"), std::string::npos);
  EXPECT_NE(error_of(packed.substr(0, packed.size() / 2)).find("gzip data ends early"), std::string::npos);
  std::string damaged = packed;
  damaged[damaged.size() - 5] ^= 1;
  EXPECT_NE(error_of(damaged).find("damaged gzip"), std::string::npos);
  EXPECT_EQ(error_of(""), "test-input: the file is empty");
}

// verifies: D1
TEST(PprofSniff, ByItsMessage) {
  EXPECT_TRUE(sniff_pprof(as_span(written(example_recording()))));
  EXPECT_FALSE(sniff_pprof(as_span("")));
  EXPECT_FALSE(sniff_pprof(as_span("\x0a\x03" "abc")));
  EXPECT_FALSE(sniff_pprof(as_span(File().function(1, "f").bytes())));  // no sample_type
}

TEST(Pprof, MutatedFilesRoundTripOrFail) {
  const std::string good = written(example_recording());
  std::mt19937 random(3);
  int read = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes = good;
    for (unsigned n = 1 + random() % 3; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    auto profile = read_bytes(pprof_format(), bytes);
    if (!profile) {
      EXPECT_TRUE(profile.error().message.starts_with("test-input: ")) << profile.error().message;
      continue;
    }
    ++read;
    const std::string again = written(*profile);
    auto back = read_bytes(pprof_format(), again);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(dump(*back), dump(*profile));
  }
  EXPECT_GT(read, 100);
}

TEST(FrameFilter, NamesWithoutArguments) {
  EXPECT_EQ(without_arguments("f(int)"), "f");
  EXPECT_EQ(without_arguments("(anonymous namespace)::g(char)"), "(anonymous namespace)::g");
  EXPECT_EQ(without_arguments("A::operator()(int) const"), "A::operator()");
  EXPECT_EQ(without_arguments(".h"), "h");
}

TEST(PprofReader, AbsurdNumbersAreRefused) {
  const auto base = [] { return File().type("s", "count").function(1, "f").location(1, 0, 0, {1}); };
  File types;
  for (int i = 0; i < 5000; ++i) types.type("s", "count");
  EXPECT_EQ(error_of(types.bytes()), "test-input: 5000 sample types, more than the limit of 4096");
  File comments = base();
  for (int i = 0; i < 70'000; ++i) comments.number(pb::Profile::kComment, 0);
  EXPECT_EQ(error_of(comments.bytes()), "test-input: 70000 comments, more than the limit of 65536");
  std::string label, labels;
  pbf_writer(label).add_int64(1, 1);
  for (int i = 0; i < 70'000; ++i) pbf_writer(labels).add_message(pb::Sample::kLabel, label);
  EXPECT_EQ(error_of(base().sample({1}, {1}, labels).bytes()), "test-input: 70000 labels in a sample, more than the limit of 65536");
  EXPECT_EQ(error_of(base().sample(std::vector<uint64_t>((1 << 20) + 1, 1), {1}).bytes()),
            "test-input: 1048577 frames in a sample, more than the limit of 1048576");
  EXPECT_EQ(error_of(base().sample(std::vector<uint64_t>(60'000, 1), {1}).bytes()), "no error");
}

}  // namespace
}  // namespace cprof::format
