// Three tables over the same nodes. A call site whose frame holds n functions (n - 1 of them inlined) is n nodes; the
// innermost comes first and is the one that the site's own values count for. So node ids need no table: they are the
// site's first node plus the line.
#include "store/stack_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "analyze/weights.h"
#include "profile/frame_name.h"
#include "store/script_query.h"
#include "store/sql_value.h"
#include "store/virtual_table.h"

namespace cprof::store {
namespace {

// NULL for the empty text.
void result_known(sqlite3_context* context, std::string_view text) {
  if (!text.empty()) result_text(context, text);
}

void result_symbol(sqlite3_context* context, int64_t symbol_id) {
  if (symbol_id >= 0) sqlite3_result_int64(context, symbol_id);
}

// The forest by itself: integers only; names are a join away.
class ForestCursor final : public TableCursor {
 public:
  explicit ForestCursor(StackIndexCache& cache) : cache_(cache) {}

  Result<void> filter(int plan, std::span<sqlite3_value*> arguments) override {
    stacks_ = TRY(cache_.get());
    node_ = end_ = 0;
    if (plan == kAll) {
      end_ = stacks_->node_count();
    } else if (plan == kById && sqlite3_value_type(arguments[0]) != SQLITE_NULL) {
      const int64_t id = sqlite3_value_int64(arguments[0]);
      if (id >= 0 && id < stacks_->node_count()) node_ = static_cast<uint32_t>(id), end_ = node_ + 1;
    } else if (sqlite3_value_type(arguments[0]) != SQLITE_NULL) {
      if (const auto site = stacks_->site(sqlite3_value_int64(arguments[0]))) {
        node_ = stacks_->sites()[*site].first_node;
        end_ = node_ + stacks_->frame_of(*site).line_count;
      }
    }
    site_ = node_ < end_ ? stacks_->site_of_node(node_) : 0;
    return {};
  }
  Result<void> next() override {
    if (++node_ < end_ && node_ - stacks_->sites()[site_].first_node >= stacks_->frame_of(site_).line_count) ++site_;
    return {};
  }
  bool at_end() const override { return node_ >= end_; }
  int64_t rowid() const override { return node_; }
  void column(sqlite3_context* context, int column) const override {
    const uint32_t line = node_ - stacks_->sites()[site_].first_node;
    const uint32_t parent = stacks_->parent_of(site_, line);
    switch (column) {
      case 0: return sqlite3_result_int64(context, node_);
      case 1: return parent == StackIndex::kNone ? void() : sqlite3_result_int64(context, parent);
      case 2: return sqlite3_result_int64(context, site_);
      case 3: return sqlite3_result_int64(context, stacks_->sites()[site_].frame);
      case 4: return result_symbol(context, stacks_->lines_of(site_)[line].symbol_id);
      default: return sqlite3_result_int(context, line == 0);
    }
  }

  enum Plan { kAll, kById, kBySite };

 private:
  StackIndexCache& cache_;
  const StackIndex* stacks_ = nullptr;
  uint32_t node_ = 0, end_ = 0, site_ = 0;
};

class ForestTable final : public VirtualTable {
 public:
  explicit ForestTable(StackIndexCache& cache) : cache_(cache) {}
  std::string columns() const override {
    return "id INTEGER, parent_id INTEGER, callsite_id INTEGER, frame_id INTEGER, symbol_id INTEGER, "
           "is_leaf_function_in_callsite_frame INTEGER";
  }
  int plan(sqlite3_index_info& info) const override {
    info.idxNum = take_equality(info, 0, 1)   ? ForestCursor::kById
                  : take_equality(info, 2, 1) ? ForestCursor::kBySite
                                              : ForestCursor::kAll;
    info.estimatedCost = info.idxNum == ForestCursor::kAll ? 1e7 : 2;
    info.estimatedRows = info.idxNum == ForestCursor::kAll ? 10'000'000 : 1;
    return SQLITE_OK;
  }
  std::unique_ptr<TableCursor> open() override { return std::make_unique<ForestCursor>(cache_); }

 private:
  StackIndexCache& cache_;
};

// The values that a query gives to call sites, summed. A NULL or unknown call site counts on [unknown].
struct SiteValues {
  std::vector<int64_t> of_sites;
  int64_t unknown = 0;
};

Result<SiteValues> site_values(sqlite3* db, const StackIndex& stacks, const std::string& query) {
  ScriptQuery rows = TRY(ScriptQuery::prepare(db, query));
  if (rows.columns() != 2)
    return fail(fmt::format("the query must give callsite_id and a value, not {} columns", rows.columns()));
  SiteValues values;
  values.of_sites.resize(stacks.sites().size());
  while (TRY(rows.step())) {
    const auto site = rows.is_null(0) ? std::nullopt : stacks.site(rows.integer(0));
    int64_t& sum = site ? values.of_sites[*site] : values.unknown;
    sum = analyze::add_clamped(sum, rows.integer(1));
  }
  return values;
}

// Rows that are worked out as a whole when the scan begins.
template <typename Row>
class RowsCursor : public TableCursor {
 public:
  RowsCursor(sqlite3* db, StackIndexCache& cache) : db_(db), cache_(cache) {}

  Result<void> filter(int, std::span<sqlite3_value*> arguments) override {
    at_ = 0;
    rows_.clear();
    stacks_ = TRY(cache_.get());
    const auto query = text_of(arguments[0]);
    if (!query) return fail("the query is NULL");
    return fill(TRY(site_values(db_, *stacks_, std::string(*query))));
  }
  Result<void> next() override {
    ++at_;
    return {};
  }
  bool at_end() const override { return at_ >= rows_.size(); }
  int64_t rowid() const override { return static_cast<int64_t>(at_); }

 protected:
  virtual Result<void> fill(const SiteValues& values) = 0;
  const Row& row() const { return rows_[at_]; }

  const StackIndex* stacks_ = nullptr;
  std::vector<Row> rows_;

 private:
  sqlite3* db_;
  StackIndexCache& cache_;
  size_t at_ = 0;
};

struct TreeRow {
  uint32_t site = 0, line = 0;
  int64_t self = 0, total = 0;
};

class TreeCursor final : public RowsCursor<TreeRow> {
 public:
  using RowsCursor::RowsCursor;
  static constexpr int kQueryColumn = 11;
  static constexpr const char* kColumns =
      "id INTEGER, parent_id INTEGER, callsite_id INTEGER, name TEXT, mapping_name TEXT, source_file TEXT, line_number "
      "INTEGER, "
      "inlined INTEGER, depth INTEGER, self INTEGER, total INTEGER, query TEXT HIDDEN";

  void column(sqlite3_context* context, int column) const override {
    const TreeRow& r = row();
    const auto& line = stacks_->lines_of(r.site)[r.line];
    const uint32_t parent = stacks_->parent_of(r.site, r.line);
    switch (column) {
      case 0: return sqlite3_result_int64(context, stacks_->sites()[r.site].first_node + r.line);
      case 1: return parent == StackIndex::kNone ? void() : sqlite3_result_int64(context, parent);
      case 2: return sqlite3_result_int64(context, r.site);
      case 3: return result_text(context, stacks_->text(line.name));
      case 4: return result_known(context, stacks_->text(stacks_->frame_of(r.site).module));
      case 5: return result_known(context, stacks_->text(line.file));
      case 6: return line.number == 0 ? void() : sqlite3_result_int64(context, line.number);
      case 7: return sqlite3_result_int(context, line.is_inlined);
      case 8: return sqlite3_result_int64(context, depth_[r.site] + stacks_->frame_of(r.site).line_count - 1 - r.line);
      case 9: return sqlite3_result_int64(context, r.self);
      case 10: return sqlite3_result_int64(context, r.total);
      default: return;
    }
  }

 protected:
  Result<void> fill(const SiteValues& values) override {
    const auto& sites = stacks_->sites();
    std::vector<int64_t> totals = values.of_sites;
    std::vector<bool> is_used(sites.size());
    depth_.assign(sites.size(), 0);
    for (uint32_t site = 0; site < sites.size(); ++site)
      if (sites[site].parent != StackIndex::kNone)
        depth_[site] = depth_[sites[site].parent] + stacks_->frame_of(sites[site].parent).line_count;
    for (size_t site = sites.size(); site-- > 0;) {
      is_used[site] = is_used[site] || values.of_sites[site] != 0;
      const uint32_t parent = sites[site].parent;
      if (parent == StackIndex::kNone) continue;
      totals[parent] = analyze::add_clamped(totals[parent], totals[site]);
      if (is_used[site]) is_used[parent] = true;
    }
    for (uint32_t site = 0; site < sites.size(); ++site)
      for (uint32_t line = 0; is_used[site] && line < stacks_->frame_of(site).line_count; ++line)
        rows_.push_back({site, line, line == 0 ? values.of_sites[site] : 0, totals[site]});
    return {};
  }

 private:
  std::vector<uint32_t> depth_;  // by site, of its outermost function
};

struct TotalsRow {
  StringId name = {}, module = {}, file = {};
  int64_t self = 0, total = 0;
  uint32_t last_leaf = StackIndex::kNone;  // the stack that it was counted for last
};

class TotalsCursor final : public RowsCursor<TotalsRow> {
 public:
  using RowsCursor::RowsCursor;
  static constexpr int kQueryColumn = 5;
  static constexpr const char* kColumns =
      "name TEXT, module TEXT, source_file TEXT, self INTEGER, total INTEGER, query TEXT HIDDEN";

  void column(sqlite3_context* context, int column) const override {
    const TotalsRow& r = row();
    switch (column) {
      case 0:
        return r.name.valid() ? result_text(context, stacks_->text(r.name))
                              : result_text(context, profile::kUnknownFrame);
      case 1: return r.name.valid() ? result_known(context, profile::base_name(stacks_->text(r.module))) : void();
      case 2: return r.name.valid() ? result_known(context, stacks_->text(r.file)) : void();
      case 3: return sqlite3_result_int64(context, r.self);
      case 4: return sqlite3_result_int64(context, r.total);
      default: return;
    }
  }

 protected:
  // A function counts once for a stack, however often it is on it.
  Result<void> fill(const SiteValues& values) override {
    group_lines();
    const auto& sites = stacks_->sites();
    for (uint32_t leaf = 0; leaf < sites.size(); ++leaf) {
      const int64_t value = values.of_sites[leaf];
      if (value == 0) continue;
      TotalsRow& own = rows_[group_of(leaf, 0)];
      own.self = analyze::add_clamped(own.self, value);
      for (uint32_t site = leaf; site != StackIndex::kNone; site = sites[site].parent) count(site, leaf, value);
    }
    if (values.unknown != 0) rows_.push_back({.self = values.unknown, .total = values.unknown});
    std::erase_if(rows_, [](const TotalsRow& r) { return r.self == 0 && r.total == 0; });
    std::ranges::stable_sort(rows_, [](const TotalsRow& a, const TotalsRow& b) {
      return std::pair(a.self, a.total) > std::pair(b.self, b.total);
    });
    return {};
  }

 private:
  void count(uint32_t site, uint32_t leaf, int64_t value) {
    for (uint32_t line = 0; line < stacks_->frame_of(site).line_count; ++line) {
      TotalsRow& r = rows_[group_of(site, line)];
      if (r.last_leaf == leaf) continue;
      r.last_leaf = leaf;
      r.total = analyze::add_clamped(r.total, value);
    }
  }

  uint32_t group_of(uint32_t site, uint32_t line) const { return groups_[stacks_->frame_of(site).first_line + line]; }

  // By name, module and file, so that two static functions of one name stay two.
  void group_lines() {
    struct Hash {
      size_t operator()(const std::array<uint32_t, 3>& key) const {
        return (key[0] * 0x9e3779b97f4a7c15ull + key[1]) * 0x9e3779b97f4a7c15ull + key[2];
      }
    };
    std::unordered_map<std::array<uint32_t, 3>, uint32_t, Hash> known;
    groups_.clear();
    for (uint32_t site = 0; site < stacks_->sites().size(); ++site) {
      const auto& frame = stacks_->frame_of(site);
      if (groups_.size() < frame.first_line + frame.line_count)
        groups_.resize(frame.first_line + frame.line_count, StackIndex::kNone);
      for (uint32_t i = 0; i < frame.line_count; ++i) {
        uint32_t& group = groups_[frame.first_line + i];
        if (group != StackIndex::kNone) continue;
        const auto& line = stacks_->lines_of(site)[i];
        auto [found, is_new] = known.try_emplace({line.name.value, frame.module.value, line.file.value}, rows_.size());
        if (is_new) rows_.push_back({.name = line.name, .module = frame.module, .file = line.file});
        group = found->second;
      }
    }
  }

  std::vector<uint32_t> groups_;  // by line: its row
};

template <typename CursorType>
class QueryTable final : public VirtualTable {
 public:
  QueryTable(sqlite3* db, StackIndexCache& cache) : db_(db), cache_(cache) {}
  std::string columns() const override { return CursorType::kColumns; }
  int plan(sqlite3_index_info& info) const override {
    info.estimatedCost = 1e6;
    return take_arguments(info, CursorType::kQueryColumn, 1) ? SQLITE_OK : SQLITE_CONSTRAINT;
  }
  std::unique_ptr<TableCursor> open() override { return std::make_unique<CursorType>(db_, cache_); }

 private:
  sqlite3* db_;
  StackIndexCache& cache_;
};

}  // namespace

Result<void> add_stack_tables(sqlite3* db, StackIndexCache& stacks) {
  TRY(add_table(db, "_callstack_forest", std::make_shared<ForestTable>(stacks)));
  TRY(add_table(db, "call_tree", std::make_shared<QueryTable<TreeCursor>>(db, stacks)));
  return add_table(db, "function_totals", std::make_shared<QueryTable<TotalsCursor>>(db, stacks));
}

}  // namespace cprof::store
