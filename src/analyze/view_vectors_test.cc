// The same cases as the page's own tests (ui/src/ops/vectors.test.ts): what cprof's views show and what the page shows is one
// thing. tests/vectors/make_views.py made them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "analyze/call_tree.h"
#include "analyze/diff.h"
#include "analyze/filters.h"
#include "analyze/neighbours.h"
#include "analyze/top.h"
#include "profile/builder.h"
#include "profile/frame_name.h"

namespace cprof::analyze {
namespace {

using namespace profile;
using nlohmann::json;
using Lines = std::multiset<std::string>;

const json& cases() {
  static const json all = json::parse(std::ifstream(CPROF_SOURCE_DIR "/tests/vectors/views.json"));
  return all;
}

class Maker {
 public:
  explicit Maker(const json& places) : places_(places) {}

  Profile profile_of(const json& stacks) {
    const MetricId samples = b_.add_metric("samples", "count");
    for (const std::string line : stacks) {
      const size_t at = line.rfind(' ');
      Aggregate row{.metric = samples, .value = std::atoll(line.c_str() + at + 1), .end = StackEnd::kComplete};
      row.site = site(line.substr(0, at), row.end);
      b_.add_aggregate(row);
    }
    return b_.take();
  }

 private:
  CallSiteId site(const std::string& path, StackEnd& end) {
    std::vector<LocationId> stack;
    for (size_t from = 0; from <= path.size();) {
      const size_t to = std::min(path.find(';', from), path.size());
      const std::string name = path.substr(from, to - from);
      from = to + 1;
      if (name == kTruncatedFrame) end = StackEnd::kMaxDepth;
      else if (name != kUnknownFrame) stack.push_back(location(name));
    }
    return b_.stack(stack);
  }

  LocationId location(const std::string& name) {
    const json place = places_.value(name, json::object());
    const std::string path = place.value("path", ""), file = place.value("file", "");
    const MappingId mapping = path.empty() ? MappingId() : b_.mapping({.path = b_.intern(path)});
    const StringId text = b_.intern(name);
    const Line line{.function = b_.function({.name = text, .system_name = text, .file = b_.intern(file)})};
    return b_.named_location(mapping, FrameKind::kUser, {&line, 1});
  }

  const json& places_;
  ProfileBuilder b_;
};

Filters filters_of(const json& list) {
  Filters filters;
  for (const json& filter : list) {
    const Pattern pattern = *Pattern::compile(filter[1].get<std::string>());
    const std::string kind = filter[0];
    if (kind == "focus") filters.focus.push_back(pattern);
    else if (kind == "ignore") filters.ignore.push_back(pattern);
    else if (kind == "hide") filters.hide.push_back(pattern);
    else filters.show_from = pattern;
  }
  return filters;
}

class ViewVectors : public testing::TestWithParam<size_t> {
 protected:
  static Profile profile_of(const json& c, const char* stacks) {
    auto result = filtered(Maker(c["places"]).profile_of(c[stacks]), filters_of(c["filters"]));
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return std::move(*result);
  }
  static SiteTotals totals_of(const Profile& p) { return sum_by_site(p, sample_weights(p, {.kind = WeightSelection::Kind::kMetric})); }

  const json& c_ = cases()[GetParam()];
};

// "main;work 3/10": the path, self and total. Branches of nothing at all may be left out or not.
Lines lines_of(const CallTree& tree, const Groups& groups) {
  Lines lines;
  std::vector<std::string> paths(tree.nodes.size());
  for (size_t i = 1; i < tree.nodes.size(); ++i) {
    const TreeNode& node = tree.nodes[i];
    paths[i] = (node.parent == 0 ? "" : paths[node.parent] + ";") + groups.name(node.group).text;
    if (node.self != 0 || node.total != 0) lines.insert(paths[i] + " " + std::to_string(node.self) + "/" + std::to_string(node.total));
  }
  return lines;
}

TEST_P(ViewVectors, TreeAndTable) {
  const Profile p = profile_of(c_, "stacks");
  const Groups groups(p, Granularity::kFunctions);
  const SiteTotals totals = totals_of(p);
  EXPECT_EQ(totals.total, c_["total"].get<int64_t>());
  Lines tree;
  for (const std::string line : c_["down"])
    if (!line.ends_with(" 0/0")) tree.insert(line);
  EXPECT_EQ(lines_of(call_tree(p, groups, totals), groups), tree);

  std::set<json> rows;
  for (const TopRow& row : top_functions(p, groups, totals)) rows.insert(json::array({groups.name(row.group).text, row.self, row.total}));
  EXPECT_EQ(rows, std::set<json>(c_["table"].begin(), c_["table"].end()));
}

TEST_P(ViewVectors, Neighbours) {
  if (!c_.contains("neighbours")) return;
  const json& wanted = c_["neighbours"];
  const Profile p = profile_of(c_, "stacks");
  const Groups groups(p, Granularity::kFunctions);
  const std::string function = wanted["of"];
  std::vector<uint32_t> of;
  for (uint32_t group = 0; group < groups.size(); ++group)
    if (groups.name(group).text == function) of.push_back(group);
  std::set<json> callers, callees;
  for (const Neighbourhood& around : neighbours_of(call_tree(p, groups, totals_of(p)), of, groups.size())) {
    for (const Neighbour& n : around.callers)
      if (n.value != 0) callers.insert(json::array({groups.name(n.group).text, n.value}));
    for (const Neighbour& n : around.callees)
      if (n.value != 0) callees.insert(json::array({groups.name(n.group).text, n.value}));
  }
  EXPECT_EQ(callers, std::set<json>(wanted["callers"].begin(), wanted["callers"].end()));
  EXPECT_EQ(callees, std::set<json>(wanted["callees"].begin(), wanted["callees"].end()));
}

TEST_P(ViewVectors, Diff) {
  if (!c_.contains("diff")) return;
  const Profile now = profile_of(c_, "stacks"), before = profile_of(c_, "before");
  auto side = [](const Profile& p) {
    const Weights values = sample_weights(p, {.kind = WeightSelection::Kind::kMetric});
    return DiffSide{.profile = &p, .values = values, .counts = sample_counts(p, default_metric(p), values)};
  };
  const DiffSide base = side(before), after = side(now);
  const Joined both = joined(base, after, Granularity::kFunctions);
  const Normalize normalize = c_["diff"]["scaled"].get<bool>() ? Normalize::kTotal : Normalize::kNone;
  for (const bool by_total : {false, true}) {
    const Diff result = diff(both, base, after, {.normalize = normalize, .by_total = by_total});
    for (const json& row : c_["diff"]["rows"]) {
      if ((row[1] == "total") != by_total) continue;
      const auto found = std::ranges::find(result.rows, row[0].get<std::string>(), &DiffRow::name);
      ASSERT_NE(found, result.rows.end()) << row;
      EXPECT_EQ(found->before, row[2].get<int64_t>()) << row;
      EXPECT_EQ(found->after, row[3].get<int64_t>()) << row;
      EXPECT_EQ(name_of(found->change), row[4].get<std::string>()) << row;
    }
  }
}

std::string title_of(const testing::TestParamInfo<size_t>& info) {
  std::string title = cases()[info.param]["title"];
  for (char& c : title)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return title + "_" + std::to_string(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, ViewVectors, testing::Range(size_t{0}, cases().size()), title_of);

}  // namespace
}  // namespace cprof::analyze
