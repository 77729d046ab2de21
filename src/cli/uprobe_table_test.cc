#include "cli/uprobe_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/text_layout.h"
#include "cli/uprobe_lines.h"

namespace cprof::cli {
namespace {

std::vector<UprobeRow> some_functions() {
  std::vector<UprobeRow> rows(3);
  rows[0] = {.function = "f(int)", .module = "app", .number = 0, .calls = 10, .finished = 10, .total_ns = 500, .mean_ns = 50, .most_ns = 90};
  rows[1] = {.function = "g()", .module = "libg.so", .number = 1, .calls = 3, .finished = 2, .unfinished = 1, .total_ns = 9'000, .mean_ns = 4'500};
  rows[2] = {.function = "never", .module = "app", .number = 2};
  return rows;
}

UprobeView sorted_by(std::string_view key) {
  UprobeView view;
  view.sort = static_cast<size_t>(std::ranges::find(uprobe_sort_keys(), key) - uprobe_sort_keys().begin());
  return view;
}

TEST(UprobeTable, SortsFiltersAndHidesWhatWasNotCalled) {
  EXPECT_EQ(shown_functions(sorted_by("total"), some_functions()).front().function, "g()");
  EXPECT_EQ(shown_functions(sorted_by("calls"), some_functions()).front().function, "f(int)");
  EXPECT_EQ(shown_functions(sorted_by("function"), some_functions()).front().function, "f(int)");
  UprobeView view = sorted_by("calls");
  view.is_reversed = true;
  EXPECT_EQ(shown_functions(view, some_functions()).front().function, "g()");
  view.filter = *analyze::Pattern::compile("app$");
  ASSERT_EQ(shown_functions(view, some_functions()).size(), 1u);
}

TEST(UprobeTable, FitsItsWidth) {
  const UprobeView view = sorted_by("total");
  for (size_t columns : {60, 80, 120, 200}) {
    const UprobeTable table(view, columns, term::Style(false));
    EXPECT_EQ(columns_of(table.header()), columns);
    for (const UprobeRow& row : some_functions()) EXPECT_EQ(columns_of(table.line(row)), columns);
  }
}

TEST(UprobeTable, CountsOnlyHaveNoTimes) {
  UprobeView view = sorted_by("calls");
  view.has_latency = false;
  const UprobeTable table(view, 100, term::Style(false));
  EXPECT_EQ(table.header().find("p50"), std::string::npos);
  EXPECT_NE(table.header().find("calls/s"), std::string::npos);
}

TEST(UprobeTable, HistogramLinesHaveBars) {
  uprobe::LatencyHistogram histogram;
  histogram.buckets[uprobe_bucket(1'000'000)] = 100;
  histogram.buckets[uprobe_bucket(3'000'000)] = 50;
  const auto lines = histogram_lines(histogram, 80);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(std::ranges::count(lines[0], '#'), 2 * std::ranges::count(lines[2], '#'));
  EXPECT_EQ(std::ranges::count(lines[1], '#'), 0);
}

// verifies: A12
TEST(UprobeLines, TheNamesAreAPromise) {
  uprobe::FunctionSums sums;
  sums.calls = 4;
  sums.finished = 2;
  sums.unwound = 1;
  sums.total_ns = 30;
  sums.raw_ns = 50;
  sums.least_ns = sums.most_ns = 15;
  sums.histogram.buckets[uprobe_bucket(15)] = 2;
  EXPECT_EQ(uprobe_json_line({.function = "f(char const*)", .module = "app", .sums = sums}),
            "{\"function\":\"f(char const*)\",\"module\":\"app\",\"calls\":4,\"total_ns\":30,\"min_ns\":15,\"mean_ns\":15,\"p50_ns\":15,\"p95_ns\":15,"
            "\"p99_ns\":15,\"max_ns\":15,\"unfinished\":1,\"unwound\":1,\"untimed\":0,\"raw_total_ns\":50,\"histogram\":[[8,2]]}\n");
  const uprobe::Caller callers[] = {{.name = "main", .module = "app", .address = 1, .calls = 3}, {.name = "", .module = "x.so", .address = 16, .calls = 1}};
  const std::string counted = uprobe_json_line({.function = "f", .module = "", .sums = sums, .has_latency = false, .callers = callers, .has_callers = true});
  EXPECT_NE(counted.find("\"total_ns\":null,\"min_ns\":null"), std::string::npos) << counted;
  EXPECT_NE(counted.find("\"callers\":[{\"name\":\"main\",\"module\":\"app\",\"calls\":3},{\"name\":\"[x.so+0x10]\""), std::string::npos) << counted;
}

TEST(UprobeLines, StacksAreThereWhenAskedFor) {
  const uprobe::FunctionSums sums;
  const std::vector<uprobe::CallStack> stacks = {{.frames = {"handle", "main"}, .calls = 2, .total_ns = 30},
                                                 {.frames = {}, .calls = 1, .total_ns = 9, .end = profile::StackEnd::kUnreadableMemory}};
  const std::string line = uprobe_json_line({.function = "f", .module = "app", .sums = sums, .stacks = stacks, .has_stacks = true});
  EXPECT_TRUE(line.ends_with(",\"stacks\":[{\"frames\":[\"handle\",\"main\"],\"end\":\"complete\",\"calls\":2,\"total_ns\":30},"
                             "{\"frames\":[],\"end\":\"unreadable-memory\",\"calls\":1,\"total_ns\":9}]}\n"))
      << line;
  EXPECT_EQ(uprobe_json_line({.function = "f", .module = "app", .sums = sums}).find("stacks"), std::string::npos);
  EXPECT_EQ(stack_lines(stacks[0], 1), (std::vector<std::string>{"             2 told, 30 ns in all, from", "               handle", "               and 1 more"}));
  EXPECT_EQ(stack_lines(stacks[1], 9).back(), "               [unreadable-memory]");
}

}  // namespace
}  // namespace cprof::cli
