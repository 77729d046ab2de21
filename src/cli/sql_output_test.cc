#include "cli/sql_output.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cli/line_editor.h"

namespace cprof::cli {
namespace {

using store::SqlBlob;
using store::SqlValue;

const std::byte kBytes[] = {std::byte{0}, std::byte{0xff}};

std::string shown(SqlFormat format, std::vector<std::string> columns, std::vector<std::vector<SqlValue>> rows,
                  size_t width = 0) {
  char* text = nullptr;
  size_t size = 0;
  FILE* file = open_memstream(&text, &size);
  auto output = make_sql_output(format, file, width);
  EXPECT_TRUE(output->begin(columns));
  for (const auto& row : rows) EXPECT_TRUE(output->row(row));
  EXPECT_TRUE(output->end(false));
  fclose(file);
  std::string result(text, size);
  free(text);
  return result;
}

const std::vector<SqlValue> kEveryKind = {std::monostate(), std::numeric_limits<int64_t>::min(), 0.1,
                                          std::string_view("a\"b,\n"), SqlBlob{kBytes}};

TEST(SqlOutput, CsvAsRfc4180Has) {
  EXPECT_EQ(shown(SqlFormat::kCsv, {"n", "i", "r", "t, u", "b"},
                  {kEveryKind, {std::string_view(""), int64_t{1}, 1e300, std::string_view("x"), std::monostate()}}),
            "n,i,r,\"t, u\",b\r\n,-9223372036854775808,0.1,\"a\"\"b,\n\",00ff\r\n\"\",1,1e+300,x,\r\n");
}

TEST(SqlOutput, JsonIsOneArray) {
  EXPECT_EQ(
      shown(SqlFormat::kJson, {"n", "i", "r", "t", "t"},
            {{std::monostate(), std::numeric_limits<int64_t>::max(), 2.0, std::string_view("a\"\\\n\x01ä"),
              SqlBlob{kBytes}}}),
      "[\n{\"n\":null,\"i\":9223372036854775807,\"r\":2.0,\"t\":\"a\\\"\\\\\\u000a\\u0001ä\",\"t_2\":\"00ff\"}\n]\n");
  EXPECT_EQ(shown(SqlFormat::kJson, {"a"}, {}), "[]\n");
  EXPECT_EQ(shown(SqlFormat::kJson, {"a"}, {{std::nan("")}, {-INFINITY}, {std::string_view("\xff\xc0\xaf")}}),
            "[\n{\"a\":null},\n{\"a\":null},\n{\"a\":\"\\ufffd\\ufffd\\ufffd\"}\n]\n")
      << "no number of JSON, no text of JSON";
}

TEST(SqlOutput, TablesAreAligned) {
  EXPECT_EQ(shown(SqlFormat::kTable, {"name", "count"},
                  {{std::string_view("日本"), int64_t{5}},
                   {std::string_view("ab\x1b[1m"), int64_t{12345678}},
                   {std::monostate(), std::monostate()}}),
            "name       count\n------  --------\n日本           5\nab?[1m  12345678\nNULL    NULL\n");
  EXPECT_EQ(shown(SqlFormat::kTable, {"b"}, {{SqlBlob{kBytes}}}), "b\n-------\nx'00ff'\n");
  EXPECT_EQ(shown(SqlFormat::kTable, {"a"}, {}), "a\n-\n");
}

TEST(SqlOutput, TablesFitTheTerminal) {
  const std::string wide(100, 'x');
  const std::string text = shown(SqlFormat::kTable, {"a", "b"}, {{std::string_view(wide), int64_t{7}}}, 40);
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    EXPECT_LE(text.find('\n', at) - at, 40u + 2) << text;
  EXPECT_NE(text.find("…"), std::string::npos);
  EXPECT_NE(text.find(" 7\n"), std::string::npos);
}

TEST(LineEditor, CompletesWhatIsCommon) {
  const std::vector<std::string> words = {"stack_profile_frame", "stack_profile_mapping", "thread", "SELECT"};
  EXPECT_EQ(complete(words, "st").addition, "ack_profile_");
  EXPECT_EQ(complete(words, "stack_profile_").addition, "");
  EXPECT_EQ(complete(words, "stack_profile_").candidates.size(), 2u);
  EXPECT_EQ(complete(words, "sel").addition, "ECT");
  EXPECT_TRUE(complete(words, "x").candidates.empty());
}

}  // namespace
}  // namespace cprof::cli
