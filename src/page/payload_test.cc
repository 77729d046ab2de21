#include "page/payload.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "profile/builder.h"
#include "profile/validate.h"

namespace cprof::page {
namespace {

using profile::CallSiteId;
using profile::ProfileBuilder;

// Reads a payload as the page does.
struct Decoded {
  nlohmann::json head;
  std::map<std::string, std::vector<int64_t>> columns;
  std::string blob;

  explicit Decoded(const std::string& payload) {
    EXPECT_EQ(payload.substr(0, 4), "CPV1");
    uint32_t words[2];
    memcpy(words, payload.data() + 4, 8);
    EXPECT_EQ(words[0], 1u);
    head = nlohmann::json::parse(payload.substr(12, words[1]));
    size_t at = 12 + words[1];
    for (const auto& c : head["columns"]) {
      const std::string bytes = payload.substr(at, c["bytes"].get<size_t>());
      at += bytes.size();
      if (c["name"] == "strings.bytes") blob = bytes;
      if (c["type"] != "bytes") read(bytes, c);
    }
    EXPECT_EQ(at, payload.size());
  }

  void read(const std::string& bytes, const nlohmann::json& c) {
    auto& values = columns[c["name"]];
    uint64_t value = 0;
    int shift = 0;
    for (const unsigned char byte : bytes) {
      value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if (byte & 0x80) continue;
      values.push_back(c["type"] == "svarint" ? static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1) : static_cast<int64_t>(value));
      value = 0, shift = 0;
    }
    EXPECT_EQ(values.size(), c["count"].get<size_t>()) << c["name"];
  }

  std::string text(int64_t id) const {
    size_t at = 0;
    for (int64_t i = 0; i < id; ++i) at += static_cast<size_t>(columns.at("strings.length")[static_cast<size_t>(i)]);
    return blob.substr(at, static_cast<size_t>(columns.at("strings.length")[static_cast<size_t>(id)]));
  }

  // "main;work 3 40": the path of each node, and its self in each metric.
  std::vector<std::string> paths() const {
    std::vector<std::string> result, open;
    for (size_t i = 0; i < columns.at("tree.func").size(); ++i) {
      for (int64_t up = columns.at("tree.up")[i]; up > 0; --up) open.pop_back();
      open.push_back(text(columns.at("funcs.name")[static_cast<size_t>(columns.at("tree.func")[i])]));
      std::string line;
      for (const std::string& name : open) line += (line.empty() ? "" : ";") + name;
      for (size_t m = 0; m < head["metrics"].size(); ++m) line += " " + std::to_string(columns.at("tree.self." + std::to_string(m))[i]);
      result.push_back(line);
    }
    return result;
  }
};

struct Program {
  ProfileBuilder b;
  profile::MappingId app = b.mapping({.path = b.intern("/usr/bin/app"), .start = 0x1000});
  profile::MetricId clock = b.add_metric("cpu-clock", "nanoseconds", 10, true);
  profile::ThreadId thread = b.add_thread(b.add_process(7, "app"), 8, "worker");

  profile::LocationId at(std::string_view name, uint32_t line) {
    const profile::FunctionId f = b.function({.name = b.intern(name), .file = b.intern("app.cc"), .start_line = 1});
    const profile::Line lines[] = {{.function = f, .line = line}};
    return b.named_location(app, profile::FrameKind::kUser, lines);
  }
  CallSiteId stack(std::initializer_list<profile::LocationId> root_first) { return b.stack({root_first.begin(), root_first.size()}); }
};

TEST(PagePayload, TheTreeHasEverySampleInEveryMetric) {
  Program p;
  const CallSiteId light = p.stack({p.at("main", 5), p.at("light", 9)}), heavy = p.stack({p.at("main", 5), p.at("heavy", 7)});
  p.b.profile().run.start_ns = 100;
  p.b.profile().run.end_ns = 200;
  p.b.profile().run.sampling_interval_ns = 10;
  p.b.add_sample({.time_ns = 110, .weight = 10, .thread = p.thread, .site = light, .metric = p.clock});
  p.b.add_sample({.time_ns = 120, .weight = 10, .thread = p.thread, .site = heavy, .metric = p.clock});
  p.b.add_sample({.time_ns = 130, .weight = 10, .thread = p.thread, .site = heavy, .metric = p.clock});
  p.b.add_sample({.time_ns = 140, .weight = 10, .thread = p.thread, .metric = p.clock, .end = profile::StackEnd::kNoMapping});
  const Decoded page(encode_payload(p.b.take()));
  EXPECT_EQ(page.paths(), (std::vector<std::string>{"main 0 0 0", "main;heavy 20 2 20", "main;light 10 1 10", "[unknown] 10 1 10"}));
  EXPECT_EQ(page.head["metrics"][0]["name"], "cpu-clock");
  EXPECT_EQ(page.head["metrics"][0]["default"], true);
  EXPECT_EQ(page.head["metrics"][page.head["meta"]["wall_metric"].get<size_t>()]["kind"], "wall");
  EXPECT_EQ(page.columns.at("rows.time"), (std::vector<int64_t>{10, 10, 10, 10}));
  EXPECT_EQ(page.columns.at("rows.node"), (std::vector<int64_t>{3, 2, 2, 4})) << "1 is main";
  EXPECT_EQ(page.columns.at("rows.thread"), (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(page.head["meta"]["incomplete"], 1);
}

TEST(PagePayload, LinesOfOneFunctionAreNodesOfTheirOwn) {
  Program p;
  const profile::MetricId metric = p.b.add_metric("alloc_space", "bytes");
  p.b.add_aggregate({.site = p.stack({p.at("main", 5)}), .metric = metric, .value = -3});
  p.b.add_aggregate({.site = p.stack({p.at("main", 6)}), .metric = metric, .value = 8});
  const Decoded page(encode_payload(p.b.take()));
  EXPECT_EQ(page.columns.at("tree.line"), (std::vector<int64_t>{6, 5})) << "the larger first";
  EXPECT_EQ(page.columns.at("tree.self.1"), (std::vector<int64_t>{8, -3})) << "negative values stay";
  EXPECT_EQ(page.columns.at("funcs.name").size(), 1u);
  EXPECT_TRUE(page.head["meta"]["wall_metric"].is_null()) << "nothing here has a time";
}

TEST(PagePayload, WhatIsPrunedIsStillCounted) {
  Program p;
  const profile::MetricId metric = p.b.add_metric("x", "count");
  for (uint32_t i = 0; i < 50; ++i)
    p.b.add_aggregate({.site = p.stack({p.at("main", 1), p.at("f" + std::to_string(i), 2)}), .metric = metric, .value = i == 7 ? 1000 : 1});
  const Decoded page(encode_payload(p.b.take(), {.max_nodes = 3}));
  EXPECT_EQ(page.paths(), (std::vector<std::string>{"main 0 0", "main;f7 0 1000", "main;(pruned) 0 49"}));
  EXPECT_EQ(page.head["meta"]["pruned_nodes"], 49);
}

TEST(PagePayload, FiftyThousandFramesDeep) {
  Program p;
  std::vector<profile::LocationId> stack(50'000, p.at("again", 3));
  p.b.add_aggregate({.site = p.b.stack(stack), .metric = p.clock, .value = 1});
  const Decoded page(encode_payload(p.b.take()));
  EXPECT_EQ(page.columns.at("tree.func").size(), 50'000u);
  EXPECT_EQ(page.columns.at("tree.self.0").back(), 1);
}

TEST(PagePayload, ModulesHaveTheirPaths) {
  Program p;
  p.b.add_aggregate({.site = p.stack({p.at("main", 5)}), .metric = p.clock, .value = 1});
  const Decoded page(encode_payload(p.b.take()));
  EXPECT_EQ(page.text(page.columns.at("funcs.module")[0]), "app");
  EXPECT_EQ(page.text(page.columns.at("funcs.path")[0]), "/usr/bin/app");
}

TEST(PagePayload, SourceTravelsAlongWhenItIsAskedFor) {
  const auto file = TemporaryFile::create();
  ASSERT_TRUE(file);
  std::string text;
  for (int line = 1; line <= 200; ++line) text += "line " + std::to_string(line) + "\n";
  ASSERT_TRUE(write_fully(file->fd(), std::as_bytes(std::span(text)), file->path()));
  Program p;
  auto at = [&](std::string_view name, uint32_t start, uint32_t line) {
    const profile::Line lines[] = {{.function = p.b.function({.name = p.b.intern(name), .file = p.b.intern(file->path()), .start_line = start}), .line = line}};
    return p.b.named_location(p.app, profile::FrameKind::kUser, lines);
  };
  p.b.add_aggregate({.site = p.stack({at("hot", 50, 60)}), .metric = p.clock, .value = 9000});
  p.b.add_aggregate({.site = p.stack({at("next", 70, 80)}), .metric = p.clock, .value = 999});
  p.b.add_aggregate({.site = p.stack({at("cold", 150, 150)}), .metric = p.clock, .value = 1});
  const profile::Profile profile = p.b.take();
  EXPECT_FALSE(Decoded(encode_payload(profile)).columns.contains("source.file"));
  const Decoded page(encode_payload(profile, {.with_source = true}));
  ASSERT_EQ(page.columns.at("source.first_line"), (std::vector<int64_t>{38})) << "what touches is one part; what costs nearly nothing is left out";
  EXPECT_EQ(page.text(page.columns.at("source.file")[0]), file->path());
  const std::string part = page.text(page.columns.at("source.text")[0]);
  EXPECT_TRUE(part.starts_with("line 38\n"));
  EXPECT_TRUE(part.ends_with("line 92\n"));
}

TEST(PagePayload, NothingIsAlsoAPage) {
  const Decoded page(encode_payload(ProfileBuilder().take()));
  EXPECT_TRUE(page.head["metrics"].empty());
  EXPECT_EQ(page.columns.at("tree.func").size(), 0u);
}

TEST(PagePayload, NamesOfAnyBytes) {
  Program p;
  p.b.profile().run.command = "a\xff\"</script>";
  p.b.add_aggregate({.site = p.stack({p.at("\xff\x01</script>", 1)}), .metric = p.clock, .value = 1});
  const Decoded page(encode_payload(p.b.take()));
  EXPECT_EQ(page.text(page.columns.at("funcs.name")[0]), "\xff\x01</script>");
}

TEST(PagePayload, PackedIsGzip) {
  auto packed = pack_payload(std::string(100'000, 'x'));
  ASSERT_TRUE(packed);
  EXPECT_LT(packed->size(), 1000u);
  EXPECT_EQ(packed->substr(0, 2), "\x1f\x8b");
}

}  // namespace
}  // namespace cprof::page
