#include "collect/bpf/table_store.h"

#include <gtest/gtest.h>

#include "collect/bpf/fake_maps_for_tests.h"

namespace cprof::collect {
namespace {

cp_rule sp_rule(int32_t offset) {
  cp_rule rule{};
  rule.cfa_kind = CP_CFA_SP;
  rule.offset = offset;
  return rule;
}

// A table of `pages` pages; rows_of(page) rows in each, at every other byte, each with its own rule number by turns.
struct Table {
  template <typename RowsOf>
  Table(uint32_t page_count, uint32_t rule_count, int32_t first_offset, RowsOf&& rows_of) {
    for (uint32_t i = 0; i < rule_count; i++) rules.push_back(i == 0 ? cp_rule{} : sp_rule(first_offset + static_cast<int32_t>(i) * 8));
    for (uint32_t page = 0; page < page_count; page++) {
      pages.push_back(static_cast<uint32_t>(rows.size()));
      for (uint32_t row = 0, count = static_cast<uint32_t>(rows_of(page)); row < count; row++) rows.push_back(CP_MAKE_ROW(row * 2, (page + row) % rule_count));
    }
    pages.push_back(static_cast<uint32_t>(rows.size()));
    table = {rows.data(), pages.data(), rules.data(), 0x400000, page_count, rule_count};
  }
  std::vector<cp_row> rows;
  std::vector<uint32_t> pages;
  std::vector<cp_rule> rules;
  cp_table table{};
};

const cp_rule* found_in_store(const sampler_module& module, uint64_t svma) {
  walk_row row{};
  return walk_find_row(&module, svma, &row) ? walk_rule(row.rule) : nullptr;
}

bool is_same(const cp_rule* a, const cp_rule* b) { return (!a && !b) || (a && b && memcmp(a, b, sizeof(*a)) == 0); }

void expect_equal_lookups(const Table& table, const sampler_module& module, uint64_t step) {
  uint64_t end = table.table.base + (uint64_t{table.table.page_count} + 1) * 4096;
  for (uint64_t svma = table.table.base - 4096; svma < end; svma += step) {
    const cp_rule* expected = cp_find_rule(&table.table, svma);
    ASSERT_TRUE(is_same(expected, found_in_store(module, svma))) << std::hex << svma;
  }
}

class TableStoreTest : public testing::Test {
 protected:
  void SetUp() override { walked_maps = &maps; }
  sampler_module add(const Table& table) {
    sampler_module module = store.add(table.table).value();
    module.base = table.table.base;
    return module;
  }
  FakeMaps maps;
  Diagnostics diagnostics;
  TableStore store{maps, diagnostics};
};

TEST_F(TableStoreTest, FindsWhatTheTableHas) {
  Table table(40, 30, 8, [](uint32_t page) { return page % 3 == 1 ? 0 : page * 7; });
  expect_equal_lookups(table, add(table), 1);
}

TEST_F(TableStoreTest, EqualRulesOfTwoFilesAreKeptOnce) {
  Table first(2, 30, 8, [](uint32_t) { return 60; }), second(2, 30, 16, [](uint32_t) { return 60; });
  sampler_module a = add(first), b = add(second);
  expect_equal_lookups(first, a, 1);
  expect_equal_lookups(second, b, 1);
  EXPECT_EQ(maps.rules()[31].offset, 16 + 29 * 8) << "two that are always there, 29 of the first, and one more";
  EXPECT_EQ(maps.rules()[32].cfa_kind, CP_CFA_NONE);
}

// 2,048 rows a page fill a chunk in 512 pages; page indexes and empty pages lie across its end too.
TEST_F(TableStoreTest, RowsNeverCrossTheEndOfAChunk) {
  Table table(1300, 500, 8, [](uint32_t page) { return page % 5 == 3 ? 0 : 2000 + page % 48; });
  sampler_module module = add(table);
  EXPECT_GE(maps.chunks.size(), 3u);
  expect_equal_lookups(table, module, 61);
  for (uint32_t page = 0; page < 1300; page++)
    for (uint64_t low : {0, 1, 4092, 4093, 4095}) {
      uint64_t svma = table.table.base + page * 4096 + low;
      ASSERT_TRUE(is_same(cp_find_rule(&table.table, svma), found_in_store(module, svma))) << page << " " << low;
    }
}

TEST_F(TableStoreTest, ManyTablesInOneStore) {
  std::vector<std::unique_ptr<Table>> tables;
  std::vector<sampler_module> modules;
  for (uint32_t i = 0; i < 60; i++) {
    tables.push_back(std::make_unique<Table>(30 + i, 20 + i, 8, [&](uint32_t page) { return (page * 977 + i * 131) % 1900; }));
    modules.push_back(add(*tables.back()));
  }
  EXPECT_GE(maps.chunks.size(), 2u);
  for (size_t i = 0; i < tables.size(); i++) expect_equal_lookups(*tables[i], modules[i], 37);
}

TEST_F(TableStoreTest, FullStoreIsAnErrorAndKeepsWhatItHas) {
  maps.most_chunks = 1;
  Table small(3, 5, 8, [](uint32_t) { return 100; }), large(1000, 5, 8, [](uint32_t) { return 2000; });
  sampler_module module = add(small);
  EXPECT_FALSE(store.add(large.table).has_value());
  expect_equal_lookups(small, module, 1);
}

TEST_F(TableStoreTest, RulesBeyondTheLimitAskForSnapshots) {
  Table table(2, SAMPLER_MAX_RULES + 10, 8, [](uint32_t) { return 1; });
  table.rows = {CP_MAKE_ROW(0, 5), CP_MAKE_ROW(0, SAMPLER_MAX_RULES + 5)};
  table.table.rows = table.rows.data();
  sampler_module module = add(table);
  EXPECT_EQ(found_in_store(module, 0x400000)->offset, 8 + 5 * 8);
  EXPECT_EQ(found_in_store(module, 0x401000)->cfa_kind, CP_CFA_COMPLEX);
  EXPECT_EQ(diagnostics.count("bpf_rules_full"), 11u) << "two places are taken by rules of which the table has one";
}

}  // namespace
}  // namespace cprof::collect
