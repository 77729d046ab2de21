#include "cli/cpustat_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/cpustat_lines.h"
#include "cli/text_layout.h"

namespace cprof::cli {
namespace {

using cpustat::Row;
using profile::WaitClass;

constexpr uint64_t kSecond = 1'000'000'000;

size_t key(std::string_view name) {
  const auto& keys = cpustat_sort_keys();
  return static_cast<size_t>(std::ranges::find(keys, name) - keys.begin());
}

std::vector<Row> three_rows() {
  std::vector<Row> rows(3);
  rows[0] = {.pid = 1, .tid = 1, .comm = "init", .kernel_ns = 5};
  rows[1] = {.pid = 7, .tid = 7, .comm = "app", .user_ns = 90};
  rows[2] = {.pid = 7, .tid = 8, .comm = "pool"};
  return rows;
}

TEST(CpustatTable, SortsByAColumnLargestFirst) {
  TableView view;
  EXPECT_EQ(shown_rows(view, three_rows())[0].comm, "app");
  view.sort = key("kernel");
  EXPECT_EQ(shown_rows(view, three_rows())[0].comm, "init");
  view.is_reversed = true;
  EXPECT_EQ(shown_rows(view, three_rows()).back().comm, "init");
  view = {};
  view.sort = key("comm");
  EXPECT_EQ(shown_rows(view, three_rows())[0].comm, "app");
  EXPECT_EQ(shown_rows(view, three_rows())[2].comm, "pool");
}

TEST(CpustatTable, FiltersAndHides) {
  TableView view;
  view.filter = *analyze::Pattern::compile("^7 8 ");
  ASSERT_EQ(shown_rows(view, three_rows()).size(), 1u);
  EXPECT_EQ(shown_rows(view, three_rows())[0].comm, "pool");
  view = {};
  view.hides_idle = true;
  EXPECT_EQ(shown_rows(view, three_rows()).size(), 2u);
  view = {};
  view.by_process = true;
  EXPECT_EQ(shown_rows(view, three_rows()).size(), 2u);
}

TEST(CpustatTable, FitsEveryWidth) {
  const TableView view;
  Row row{.pid = 4'000'000, .tid = 4'000'001, .comm = "a-very-long-name", .user_ns = kSecond / 8};
  row.waits_ns[static_cast<size_t>(WaitClass::kFutex)] = kSecond / 2;
  for (size_t columns = 40; columns < 200; columns += 7) {
    const CpustatTable table(view, kSecond, columns, term::Style(false));
    EXPECT_LE(columns_of(table.header()), columns);
    EXPECT_LE(columns_of(table.line(row)), columns);
    EXPECT_EQ(columns_of(table.header()), columns_of(table.line(row)));
    EXPECT_NE(table.line(row).find("12.5"), std::string::npos) << columns;
  }
}

TEST(CpustatTable, NamesCannotReachTheTerminal) {
  const TableView view;
  const CpustatTable table(view, kSecond, 100, term::Style(false));
  EXPECT_EQ(table.line({.pid = 1, .tid = 1, .comm = "\x1b[2Jevil"}).find('\x1b'), std::string::npos);
}

TEST(CpustatTable, ColoursOnlyWhereTheyAreWanted) {
  const TableView view;
  const Row busy{.pid = 1, .tid = 1, .comm = "busy", .user_ns = kSecond};
  EXPECT_EQ(CpustatTable(view, kSecond, 100, term::Style(false)).line(busy).find('\x1b'), std::string::npos);
  EXPECT_NE(CpustatTable(view, kSecond, 100, term::Style(true)).line(busy).find('\x1b'), std::string::npos);
}

TEST(CpustatLines, JsonHasEveryName) {
  Row row{.pid = 3, .tid = 4, .comm = "a\"b", .user_ns = 10, .kernel_ns = 20, .runnable_ns = 30};
  row.waits_ns[static_cast<size_t>(WaitClass::kIo)] = 40;
  row.voluntary = 1, row.involuntary = 2, row.migrations = 3, row.wakeups = 4;
  EXPECT_EQ(cpustat_json_line({.start_ns = 100, .end_ns = 300, .rows = {}}, row),
            "{\"ts_ns\":300,\"interval_ns\":200,\"pid\":3,\"tid\":4,\"comm\":\"a\\\"b\",\"user_ns\":10,\"kernel_ns\":20,\"runnable_ns\":30,"
            "\"waits_ns\":{\"futex\":0,\"lock\":0,\"poll\":0,\"sleep\":0,\"io\":40,\"network\":0,\"memory\":0,\"other\":0},"
            "\"switches_voluntary\":1,\"switches_involuntary\":2,\"migrations\":3,\"wakeups\":4}\n");
}

TEST(CpustatLines, CsvQuotesNames) {
  const std::string line = cpustat_csv_line({.start_ns = 0, .end_ns = 9, .rows = {}}, {.pid = 3, .tid = 4, .comm = "a,\"b"});
  EXPECT_EQ(line, "9,9,3,4,\"a,\"\"b\",0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\n");
  EXPECT_EQ(std::ranges::count(cpustat_csv_header(), ','), std::ranges::count(line, ',') - 1);
}

}  // namespace
}  // namespace cprof::cli
