#include "store/column_table.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "store/sql_value.h"

namespace cprof::store {
namespace {

// What a plan costs when the number of rows is not known without making them.
constexpr double kGuessedRows = 1e6;

// The rows of all sources under one number.
class Rows {
 public:
  Rows(const ColumnTableDef& definition, const ProfileSet& profiles) {
    for (const auto& source : profiles.sources()) {
      sources_.push_back(source.get());
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + definition.rows(*source));
    }
  }

  uint64_t count() const { return ends_.empty() ? 0 : ends_.back(); }
  std::pair<ProfileSource*, uint32_t> at(uint64_t row) const {
    const size_t source =
        sources_.size() == 1 ? 0 : static_cast<size_t>(std::ranges::upper_bound(ends_, row) - ends_.begin());
    return {sources_[source], static_cast<uint32_t>(row - (source == 0 ? 0 : ends_[source - 1]))};
  }

 private:
  std::vector<ProfileSource*> sources_;
  std::vector<uint64_t> ends_;
};

// The rows of a column in the order of their values; those with NULL are left out.
class ColumnIndex {
 public:
  ColumnIndex(const Rows& rows, const ColumnDef& column) {
    std::vector<int64_t> values;
    for (uint64_t row = 0; row < rows.count(); ++row) {
      const auto [source, local] = rows.at(row);
      const Cell cell = column.get(*source, local);
      if (cell.type != Cell::Type::kInteger) continue;
      values.push_back(cell.integer);
      rows_.push_back(static_cast<uint32_t>(row));
    }
    sort(values);
  }

  std::span<const uint32_t> equal(int64_t value) const {
    const auto range = std::ranges::equal_range(values_, value);
    return std::span(rows_).subspan(static_cast<size_t>(range.begin() - values_.begin()), range.size());
  }

 private:
  void sort(const std::vector<int64_t>& values) {
    if (std::ranges::is_sorted(values)) {
      values_ = values;
      return;
    }
    std::vector<uint32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](uint32_t i) { return values[i]; });
    std::vector<uint32_t> sorted;
    sorted.reserve(order.size());
    values_.reserve(order.size());
    for (uint32_t i : order) {
      sorted.push_back(rows_[i]);
      values_.push_back(values[i]);
    }
    rows_ = std::move(sorted);
  }

  std::vector<int64_t> values_;
  std::vector<uint32_t> rows_;
};

class ColumnTable final : public VirtualTable {
 public:
  ColumnTable(const ColumnTableDef& definition, const ProfileSet& profiles)
      : definition_(definition), profiles_(profiles), indexes_(definition.columns.size()) {}

  std::string columns() const override {
    std::string text;
    for (const ColumnDef& column : definition_.columns)
      text += (text.empty() ? "" : ", ") + std::string(column.name) + " " + std::string(column.type);
    return text;
  }

  int plan(sqlite3_index_info& info) const override {
    info.idxNum = kScan;
    info.estimatedCost = rows_ ? static_cast<double>(rows_->count()) : kGuessedRows;
    info.estimatedRows = static_cast<sqlite3_int64>(info.estimatedCost);
    int best = -1;
    for (int i = 0; i < info.nConstraint; ++i) {
      const auto& c = info.aConstraint[i];
      if (!c.usable || c.op != SQLITE_INDEX_CONSTRAINT_EQ || c.iColumn < 0) continue;
      const ColumnDef& column = definition_.columns[static_cast<size_t>(c.iColumn)];
      if (column.type != "INTEGER") continue;
      if (best < 0 || !column.get) best = i;
    }
    if (best < 0) return SQLITE_OK;
    info.aConstraintUsage[best].argvIndex = 1;
    info.idxNum = info.aConstraint[best].iColumn;
    const bool is_id = !definition_.columns[static_cast<size_t>(info.idxNum)].get;
    info.estimatedCost = is_id ? 1 : 20;
    info.estimatedRows = is_id ? 1 : 20;
    if (is_id) info.idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    return SQLITE_OK;
  }

  std::unique_ptr<TableCursor> open() override;

  const ColumnTableDef& definition() const { return definition_; }
  const Rows& rows() {
    if (!rows_) rows_.emplace(definition_, profiles_);
    return *rows_;
  }
  const ColumnIndex& index(size_t column) {
    if (!indexes_[column]) indexes_[column] = std::make_unique<ColumnIndex>(rows(), definition_.columns[column]);
    return *indexes_[column];
  }

  static constexpr int kScan = -1;

 private:
  const ColumnTableDef& definition_;
  const ProfileSet& profiles_;
  std::optional<Rows> rows_;
  std::vector<std::unique_ptr<ColumnIndex>> indexes_;  // by column, null until needed
};

// An integer that equals the value, if there is one: '5' and 5.0 do.
std::optional<int64_t> integer_of(sqlite3_value* value) {
  switch (sqlite3_value_numeric_type(value)) {
    case SQLITE_INTEGER: return sqlite3_value_int64(value);
    case SQLITE_FLOAT: {
      const double real = sqlite3_value_double(value);
      if (real != std::floor(real) || std::abs(real) > 9e18) return std::nullopt;
      return static_cast<int64_t>(real);
    }
    default: return std::nullopt;
  }
}

class ColumnCursor final : public TableCursor {
 public:
  explicit ColumnCursor(ColumnTable& table) : table_(table) {}

  Result<void> filter(int plan, std::span<sqlite3_value*> arguments) override {
    const Rows& rows = table_.rows();
    found_ = {};
    is_list_ = false;
    at_ = end_ = 0;
    if (plan == ColumnTable::kScan) {
      end_ = rows.count();
    } else if (const auto value = integer_of(arguments[0])) {
      find(static_cast<size_t>(plan), *value);
    }
    settle();
    return {};
  }
  Result<void> next() override {
    ++at_;
    settle();
    return {};
  }
  bool at_end() const override { return at_ >= end_; }
  int64_t rowid() const override { return static_cast<int64_t>(row()); }

  void column(sqlite3_context* context, int index) const override {
    const ColumnDef& column = table_.definition().columns[static_cast<size_t>(index)];
    if (!column.get) return sqlite3_result_int64(context, static_cast<int64_t>(row()));
    const Cell cell = column.get(*source_, local_);
    switch (cell.type) {
      case Cell::Type::kNull: return;
      case Cell::Type::kInteger: return sqlite3_result_int64(context, cell.integer);
      case Cell::Type::kReal: return sqlite3_result_double(context, cell.real);
      case Cell::Type::kText: return result_text(context, cell.text, TextLife::kStays);
    }
  }

 private:
  uint64_t row() const { return is_list_ ? found_[at_] : at_; }

  void find(size_t column, int64_t value) {
    if (table_.definition().columns[column].get) {
      found_ = table_.index(column).equal(value);
      is_list_ = true;
      end_ = found_.size();
    } else if (value >= 0 && static_cast<uint64_t>(value) < table_.rows().count()) {
      at_ = static_cast<uint64_t>(value);
      end_ = at_ + 1;
    }
  }

  void settle() {
    if (at_ < end_) std::tie(source_, local_) = table_.rows().at(row());
  }

  ColumnTable& table_;
  std::span<const uint32_t> found_;
  bool is_list_ = false;
  uint64_t at_ = 0, end_ = 0;
  ProfileSource* source_ = nullptr;
  uint32_t local_ = 0;
};

std::unique_ptr<TableCursor> ColumnTable::open() { return std::make_unique<ColumnCursor>(*this); }

}  // namespace

Result<void> add_column_table(sqlite3* db, const ColumnTableDef& definition, const ProfileSet& profiles) {
  return add_table(db, std::string(definition.name), std::make_shared<ColumnTable>(definition, profiles));
}

}  // namespace cprof::store
