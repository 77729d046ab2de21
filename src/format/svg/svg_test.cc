#include "format/svg/svg.h"

#include "format/svg/flame_layout.h"
#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using namespace testing;

Profile folded(std::string_view text) {
  auto profile = read_bytes(*find_by_name("folded"), text);
  EXPECT_TRUE(profile) << profile.error().message;
  return std::move(*profile);
}

std::string picture(std::string_view text, const WriteOptions& options = {}) {
  return write_bytes(svg_format(), folded(text), ".svg", options).value_or("");
}

size_t count(std::string_view text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(FlameLayout, BoxesJoinEqualFramesSideBySide) {
  FlameLayout layout(0);
  for (auto [path, value] : {std::pair("a;b", 3), {"a;b;c", 2}, {"a;d", 5}, {"e", 10}}) layout.add(path, value);
  layout.finish();
  std::map<std::string, std::tuple<uint32_t, double, double, int64_t>> boxes;
  for (const FlameBox& box : layout.boxes()) boxes[box.name] = {box.depth, box.start, box.width, box.total};
  EXPECT_EQ(boxes["a"], std::tuple(0u, 0.0, 10.0, 10));
  EXPECT_EQ(boxes["b"], std::tuple(1u, 0.0, 5.0, 5));
  EXPECT_EQ(boxes["c"], std::tuple(2u, 3.0, 2.0, 2));
  EXPECT_EQ(boxes["d"], std::tuple(1u, 5.0, 5.0, 5));
  EXPECT_EQ(boxes["e"], std::tuple(0u, 10.0, 10.0, 10));
  EXPECT_EQ(layout.depth(), 3u);
}

TEST(FlameLayout, NegativeValuesHaveAWidthToo) {
  FlameLayout layout(0);
  layout.add("a;gone", -3);
  layout.add("a;new", 5);
  layout.finish();
  EXPECT_EQ(layout.width(), 8);
  EXPECT_EQ(layout.total(), 2);
  EXPECT_EQ(layout.boxes().back().name, "a");
  EXPECT_EQ(layout.boxes().back().total, 2);
  EXPECT_EQ(layout.boxes().back().width, 8);
}

TEST(FlameLayout, NarrowFramesAreCounted) {
  FlameLayout layout(2);
  layout.add("a;b", 1);
  layout.add("a;c", 9);
  layout.finish();
  EXPECT_EQ(layout.narrow(), 1u);
  EXPECT_EQ(layout.boxes().size(), 2u);
}

TEST(Svg, EveryFrameHasItsNameValueAndShare) {
  const std::string svg = picture("app;main;work 75\napp;main;wait 25\n");
  EXPECT_NE(svg.find("<title>work (75 samples, 75.00%)</title>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<title>main (100 samples, 100.00%)</title>"), std::string::npos);
  EXPECT_NE(svg.find(">wait</text>"), std::string::npos) << "as text, for the browser's search";
  EXPECT_EQ(count(svg, "<svg "), 1u + 5u) << "the picture, all, app, main, work, wait";
  EXPECT_EQ(count(svg, "<svg "), count(svg, "</svg>"));
}

TEST(Svg, NamesCannotBreakTheFile) {
  const std::string svg = picture("a;<script>alert(\"&\")</script> 10\na;esc\x1b[31mred 5\na;\xff\xc0\xaf bad 5\na;\xed\xa0\x80 5\na;\xef\xbf\xbe 5\n");
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;"), std::string::npos);
  for (const char c : svg) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << int{c};
  EXPECT_EQ(svg.find('\xff'), std::string::npos);
  EXPECT_EQ(svg.find("\xed\xa0\x80"), std::string::npos);
  EXPECT_EQ(svg.find("\xef\xbf\xbe"), std::string::npos);
}

TEST(Svg, NothingToDrawIsSaid) {
  ProfileBuilder b;
  b.add_aggregate({.metric = b.add_metric("samples", "count"), .value = 0});
  const std::string svg = write_bytes(svg_format(), b.take(), ".svg").value_or("");
  EXPECT_NE(svg.find("nothing to draw"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(Svg, ValuesBelowZeroAreShadedAndSaid) {
  const std::string svg = picture("m;f 10\nm;g -4\n");
  EXPECT_NE(svg.find("values below 0 are blue"), std::string::npos);
  EXPECT_NE(svg.find("<title>m (6 samples, 100.00%)</title>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<title>g (-4 samples, 28.57%)</title><rect width=\"100%\" height=\"100%\" rx=\"1\" fill=\"hsl(212,"), std::string::npos);
  EXPECT_EQ(svg.find("width=\"-"), std::string::npos);
  EXPECT_EQ(picture("m;f 10\n").find("below 0"), std::string::npos);
}

TEST(Svg, FiftyThousandFramesDeep) {
  std::string line = "app";
  for (int i = 0; i < 50'000; ++i) line += ";f" + std::to_string(i % 7);
  const std::string svg = picture(line + " 3\n");
  EXPECT_EQ(count(svg, "<title>"), 50'002u);
}

TEST(Svg, AMegabyteOfName) {
  const std::string svg = picture("a;" + std::string(1 << 20, 'n') + " 3\n");
  EXPECT_LT(svg.size(), (size_t{1} << 20) + 10'000) << "whole in the title, cut in the label";
}

TEST(Svg, WhatIsNotDrawnIsCounted) {
  Diagnostics losses;
  WriteOptions options;
  options.losses = &losses;
  picture("a;big 1000000\na;small 1\n", options);
  EXPECT_EQ(losses.count("svg_narrow_frames"), 1u);
}

TEST(Svg, KnownButNotRead) {
  const std::string svg = picture("a;b 1\n");
  EXPECT_EQ(find_by_content(as_span(svg)), find_by_name("svg"));
  auto found = detect(*memory_input(as_span(svg), "x.svg"));
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("x.svg: this is a picture (SVG)"), std::string::npos) << found.error().message;
}

}  // namespace
}  // namespace cprof::format
