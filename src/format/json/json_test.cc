#include "format/json/json_number.h"
#include "format/json/json_stream.h"
#include "format/json/json_writer.h"
#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using namespace testing;

// The events as one line of text.
class Recorder : public JsonHandler {
 public:
  bool begin_object() override { return note("{"); }
  bool key(std::string_view name) override { return note(std::string(name) + ":"); }
  bool end_object() override { return note("}"); }
  bool begin_array() override { return note("["); }
  bool end_array() override { return note("]"); }
  bool text(std::string_view value) override {
    return value == "stop" ? refuse("asked to stop") : note("'" + std::string(value) + "'");
  }
  bool number(std::string_view literal) override { return note(std::string(literal)); }
  bool boolean(bool value) override { return note(value ? "yes" : "no"); }
  bool null() override { return note("null"); }

  std::string log;

 private:
  bool note(std::string event) {
    log += event + " ";
    return true;
  }
};

JsonStream stream_of(std::string_view text) {
  return JsonStream(std::move(*InputStream::open(std::move(*memory_input(as_span(text), "test-input")), {})));
}

std::string events_of(std::string_view text) {
  Recorder recorder;
  auto result = stream_of(text).parse(recorder);
  return result ? recorder.log : result.error().message;
}

TEST(JsonStream, EveryKindOfValue) {
  EXPECT_EQ(events_of(R"( {"a":[1,-2.50e+3,"x\u00e9\ud83d\ude00\n",true,false,null],"b":{}} )"),
            "{ a: [ 1 -2.50e+3 'x\xc3\xa9\xf0\x9f\x98\x80\n' yes no null ] b: { } } ");
  EXPECT_EQ(events_of("\xef\xbb\xbf[18446744073709551615]"), "[ 18446744073709551615 ] ");
}

TEST(JsonStream, ErrorsSayWhere) {
  EXPECT_EQ(events_of("[1,2"), "test-input: the JSON ends early, at byte 4");
  EXPECT_EQ(events_of("{\"a\":\"b"), "test-input: the JSON ends early, at byte 7");
  EXPECT_EQ(events_of(""), "test-input: the JSON ends early, at byte 0");
  EXPECT_TRUE(events_of("[1 2]").starts_with("test-input: byte 3: not JSON: missing a comma"));
  EXPECT_TRUE(events_of("[1] x").starts_with("test-input: byte 4: not JSON: "));
  EXPECT_EQ(events_of(std::string_view("[1]\0[2]", 7)), "test-input: byte 3: not JSON: a NUL byte");
  EXPECT_NE(events_of(std::string_view("[1,\0[2]", 7)).find("test-input: byte 3: not JSON"), std::string::npos);
  EXPECT_TRUE(events_of(R"(["stop"])").ends_with(": asked to stop"));
}

TEST(JsonStream, DepthIsBounded) {
  const auto nested = [](unsigned depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(events_of(nested(JsonStream::kMaxDepth)).starts_with("["));
  EXPECT_EQ(events_of(nested(JsonStream::kMaxDepth + 1)), "test-input: byte 512: brackets nested more than 512 deep");
  EXPECT_NE(events_of(std::string(5'000'000, '[')).find("nested"), std::string::npos);
}

TEST(JsonStream, OneValueIsBounded) {
  const std::string endless = "[\"" + std::string(JsonStream::kMaxToken + (1 << 20), 'x') + "\"]";
  EXPECT_EQ(events_of(endless), "test-input: byte 0: more than 67108864 bytes in one value");
}

TEST(JsonStream, EndedEarlyIsToldFromWrong) {
  Recorder recorder;
  auto cut = stream_of("[1,{\"a\":2}");
  EXPECT_FALSE(cut.parse(recorder));
  EXPECT_TRUE(cut.ended_early());
  EXPECT_EQ(recorder.log, "[ 1 { a: 2 } ");
  auto wrong = stream_of("[1,}");
  EXPECT_FALSE(wrong.parse(recorder));
  EXPECT_FALSE(wrong.ended_early());
}

TEST(JsonStream, TokensAcrossBuffers) {
  std::string text = "[";
  for (int i = 0; i < 60'000; ++i) text += "\"name " + std::to_string(i) + "\",";
  text += "0]";
  Recorder recorder;
  ASSERT_TRUE(stream_of(text).parse(recorder));
  EXPECT_EQ(std::ranges::count(recorder.log, '\''), 120'000);
  EXPECT_NE(recorder.log.find("'name 59999' 0 ] "), std::string::npos);
}

TEST(JsonNumber, ExactDecimals) {
  EXPECT_EQ(scaled_number("1.5", 6), 1'500'000);
  EXPECT_EQ(scaled_number("-0.0005", 3), -1);
  EXPECT_EQ(scaled_number("0.00049", 3), 0);
  EXPECT_EQ(scaled_number("1e-3", 3), 1);
  EXPECT_EQ(scaled_number("12e2", 0), 1200);
  EXPECT_EQ(scaled_number("9007199254740993.001", 3), 9007199254740993001);
  EXPECT_EQ(scaled_number("9223372036854775807", 0), INT64_MAX);
  EXPECT_EQ(scaled_number("-9223372036854775808", 0), INT64_MIN);
  EXPECT_EQ(scaled_number("9223372036854775808", 0), std::nullopt);
  EXPECT_EQ(scaled_number("1e400", 0), std::nullopt);
  EXPECT_EQ(scaled_number("0e999999999999999999999", 6), 0);
  EXPECT_EQ(scaled_number("1e-999999999999999999999", 6), 0);
  EXPECT_EQ(scaled_number("1x", 0), std::nullopt);
  EXPECT_EQ(scaled_number("", 0), std::nullopt);
  EXPECT_EQ(whole_number("3.0"), 3);
  EXPECT_EQ(whole_number("3e2"), 300);
  EXPECT_EQ(whole_number("3.5"), std::nullopt);
  EXPECT_EQ(whole_number("1e-5"), std::nullopt);
  EXPECT_EQ(real_number("2.5e3"), 2500.0);
  EXPECT_EQ(real_number("2.5x"), std::nullopt);
}

TEST(JsonWriter, CommasEscapesAndNumbers) {
  char path[] = "/tmp/cprof-json-test-XXXXXX";
  close(mkstemp(path));
  {
    OutputFile file = *OutputFile::create(path);
    PackedOutput packed = *PackedOutput::create(file, false);
    JsonWriter w(packed);
    w.begin_object();
    w.key("a");
    w.begin_array();
    w.number(-1);
    w.text("q\"\\\n\x01\x7f\xc3\xa9\xff\xed\xa0\x80");
    w.decimal(-1'500'000, 6);
    w.decimal(7, 3);
    w.decimal(INT64_MIN, 0);
    w.real(0.25);
    w.real(std::numeric_limits<double>::infinity());
    w.end_array();
    w.key("b");
    w.begin_object();
    w.end_object();
    w.key("c");
    w.boolean(true);
    w.end_object();
    ASSERT_TRUE(w.finish());
    ASSERT_TRUE(file.commit());
  }
  EXPECT_EQ(*read_text_file(path, 4096),
            "{\"a\":[-1,\"q\\\"\\\\\\n\\u0001\\u007f\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\",-1.5,0.007,"
            "-9223372036854775808,0.25,null],\"b\":{},\"c\":true}");
  unlink(path);
}

}  // namespace
}  // namespace cprof::format
