#include "format/json/tokenizer.h"

#include <random>

#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using testing::as_span;
using Token = JsonTokenizer::Token;

JsonTokenizer tokenizer(std::string_view text, size_t buffer = size_t{256} << 10) {
  return JsonTokenizer(std::move(*InputStream::open(std::move(*memory_input(as_span(text), "test")), {})), buffer);
}

// Every token as one word; how it ended is the last.
std::string words(std::string_view text, size_t buffer = size_t{256} << 10) {
  JsonTokenizer json = tokenizer(text, buffer);
  std::string out;
  while (true) {
    switch (json.next()) {
      case Token::kBeginObject: out += "{ "; break;
      case Token::kEndObject: out += "} "; break;
      case Token::kBeginArray: out += "[ "; break;
      case Token::kEndArray: out += "] "; break;
      case Token::kKey: out += "k:" + std::string(json.text()) + " "; break;
      case Token::kText: out += "t:" + std::string(json.text()) + " "; break;
      case Token::kNumber: out += "n:" + std::string(json.text()) + " "; break;
      case Token::kTrue: out += "true "; break;
      case Token::kFalse: out += "false "; break;
      case Token::kNull: out += "null "; break;
      case Token::kEnd: return out + "end" + std::to_string(json.depth());
      case Token::kBad: return out + "bad";
    }
  }
}

TEST(JsonTokenizer, Documents) {
  EXPECT_EQ(words(R"( {"a" : [1,-2.5e+3, true,false , null], "b":{} } )"), "{ k:a [ n:1 n:-2.5e+3 true false null ] k:b { } } end0");
  EXPECT_EQ(words("[]"), "[ ] end0");
  EXPECT_EQ(words("\"x\""), "t:x end0");
  EXPECT_EQ(words("[1,]"), "[ n:1 ] end0");
  EXPECT_EQ(words("{\"a\":1,}"), "{ k:a n:1 } end0");
  EXPECT_EQ(words("[NaN,-Infinity,Infinity]"), "[ n:NaN n:-Infinity n:Infinity ] end0");
}

TEST(JsonTokenizer, Escapes) {
  EXPECT_EQ(words(R"(["\"\\\/\b\f\n\r\tz"])"), "[ t:\"\\/\b\f\n\r\tz ] end0");
  EXPECT_EQ(words(R"(["\u0041\u00e9\u20ac\ud83d\ude00"])"), "[ t:A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 ] end0");
  EXPECT_EQ(words(R"(["\ud83d x\udE00\ud83d\u0041"])"), "[ t:\xef\xbf\xbd x\xef\xbf\xbd\xef\xbf\xbd" "A ] end0");
  EXPECT_EQ(words("[\"a\x01\n\"]"), "[ t:a\x01\n ] end0");
  EXPECT_EQ(words(R"({"k\n":1})"), "{ k:k\n n:1 } end0");
}

TEST(JsonTokenizer, OpenEndsTellTheirDepth) {
  EXPECT_EQ(words("[1"), "[ n:1 end1");
  EXPECT_EQ(words("[{\"a\":1},"), "[ { k:a n:1 } end1");
  EXPECT_EQ(words("[{\"a\":1"), "[ { k:a n:1 end2");
}

TEST(JsonTokenizer, Refused) {
  for (std::string_view text : {"", " ", "{\"a\"", "{\"a\":", "[\"abc", "[\"a\\", "[\"\\u12", "[\"\\x\"]", "[\"\\u12g4\"]", "[1 2]",
                                "{1:2}", "[tru]", "[+1]", "{} {}", "[}", "{]", "]", "{\"a\":}", "[,1]", "[nul", "\x7f" "ELF"})
    EXPECT_TRUE(words(text).ends_with("bad")) << text;
}

TEST(JsonTokenizer, ErrorsTellTheByte) {
  JsonTokenizer json = tokenizer("[1, 2 3]");
  while (json.next() != Token::kBad) {
  }
  EXPECT_EQ(json.error().message, "test: a ',' or the closing bracket must stand here, at byte 6");
  EXPECT_EQ(json.next(), Token::kBad);
}

TEST(JsonTokenizer, DepthIsBounded) {
  EXPECT_TRUE(words(std::string(100'000, '[')).ends_with("bad"));
  const std::string deep(JsonTokenizer::kMaxDepth, '[');
  EXPECT_TRUE(words(deep + std::string(deep.size(), ']')).ends_with("end0"));
}

// Wherever the buffer is cut, the tokens are the same; a text longer than the buffer makes it grow.
TEST(JsonTokenizer, EveryCutGivesTheSame) {
  const std::string text = R"({"key" : ["some text \u20ac\n", 1234.5678, true, null, {"nested": -1e9}], "x":"\ud83d\ude00"})";
  const std::string whole = words(text);
  for (size_t lead = 0; lead < 40; ++lead)
    for (size_t buffer : {16u, 17u, 19u, 32u, 33u}) EXPECT_EQ(words(std::string(lead, ' ') + text, buffer), whole) << lead << " " << buffer;
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(words("[\"" + large + "\"]", 16), "[ t:" + large + " ] end0");
}

TEST(JsonTokenizer, SkipsWholeValues) {
  JsonTokenizer json = tokenizer(R"({"a":{"b":[1,{"c":"}"}]},"d":2})");
  json.next();
  EXPECT_EQ(json.next(), Token::kKey);
  EXPECT_EQ(json.skip(json.next()), Token::kEndObject);
  EXPECT_EQ(json.next(), Token::kKey);
  EXPECT_EQ(json.text(), "d");
}

}  // namespace
}  // namespace cprof::format
