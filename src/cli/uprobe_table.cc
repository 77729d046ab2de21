#include "cli/uprobe_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/digit_groups.h"
#include "cli/text_layout.h"

namespace cprof::cli {
namespace {

constexpr size_t kLeastNameColumns = 12;

enum class Unit : uint8_t { kName, kModule, kCount, kRate, kTime };

struct UprobeSortKey {
  const char* name;
  double (*value)(const UprobeRow&);
};

template <uint64_t UprobeRow::*kMember>
double number_of(const UprobeRow& row) {
  return static_cast<double>(row.*kMember);
}

// By name it is the alphabet that counts.
constexpr UprobeSortKey kUprobeSortKeys[] = {
    {"function", [](const UprobeRow&) { return 0.0; }},
    {"calls", number_of<&UprobeRow::calls>},
    {"rate", [](const UprobeRow& row) { return row.calls_per_s; }},
    {"total", number_of<&UprobeRow::total_ns>},
    {"mean", number_of<&UprobeRow::mean_ns>},
    {"min", number_of<&UprobeRow::least_ns>},
    {"p50", number_of<&UprobeRow::p50_ns>},
    {"p95", number_of<&UprobeRow::p95_ns>},
    {"p99", number_of<&UprobeRow::p99_ns>},
    {"max", number_of<&UprobeRow::most_ns>},
    {"unwound", number_of<&UprobeRow::unwound>},
    {"running", number_of<&UprobeRow::unfinished>},
};

double value_of(std::string_view key, const UprobeRow& row) {
  const auto* found = std::ranges::find(kUprobeSortKeys, key, [](const UprobeSortKey& k) { return std::string_view(k.name); });
  return found->value(row);
}

// Seven digits, then thousands.
std::string count_text(double value) {
  if (value <= 0) return ".";
  return value < 9'999'999.5 ? grouped(static_cast<int64_t>(value + 0.5)) : grouped(static_cast<int64_t>(value / 1000)) + "k";
}

}  // namespace

struct UprobeTable::Field {
  const char* title;
  const char* key;      // of the sort keys; "" none
  Unit unit;
  size_t columns;
  uint8_t importance;   // the least important go first where there is no room
  bool needs_latency;
};

const UprobeTable::Field UprobeTable::kFields[] = {
    {"FUNCTION", "function", Unit::kName, 0, 9, false},
    {"MODULE", "", Unit::kModule, 14, 4, false},
    {"calls", "calls", Unit::kCount, 10, 9, false},
    {"calls/s", "rate", Unit::kRate, 9, 6, false},
    {"total", "total", Unit::kTime, 8, 9, true},
    {"mean", "mean", Unit::kTime, 8, 9, true},
    {"min", "min", Unit::kTime, 8, 2, true},
    {"p50", "p50", Unit::kTime, 8, 7, true},
    {"p95", "p95", Unit::kTime, 8, 6, true},
    {"p99", "p99", Unit::kTime, 8, 7, true},
    {"max", "max", Unit::kTime, 8, 8, true},
    {"unwound", "unwound", Unit::kCount, 8, 3, true},
    {"running", "running", Unit::kCount, 8, 3, true},
};

UprobeRow uprobe_row_of(std::string_view function, std::string_view module, uint32_t number, const uprobe::FunctionSums& sums) {
  UprobeRow row{.function = function, .module = module, .number = number};
  row.calls = sums.calls;
  row.finished = sums.finished;
  row.unwound = sums.unwound;
  row.unfinished = sums.unfinished();
  row.total_ns = sums.total_ns;
  row.least_ns = sums.least_ns;
  row.mean_ns = sums.mean_ns();
  row.p50_ns = sums.quantile(0.50);
  row.p95_ns = sums.quantile(0.95);
  row.p99_ns = sums.quantile(0.99);
  row.most_ns = sums.most_ns;
  return row;
}

const std::vector<std::string>& uprobe_sort_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> names;
    for (const UprobeSortKey& key : kUprobeSortKeys) names.emplace_back(key.name);
    return names;
  }();
  return keys;
}

std::vector<UprobeRow> shown_functions(const UprobeView& view, std::vector<UprobeRow> rows) {
  std::erase_if(rows, [&](const UprobeRow& row) {
    return row.calls == 0 || (view.filter && !view.filter->found_in(fmt::format("{} {}", row.function, row.module)));
  });
  const std::string& key = uprobe_sort_keys()[view.sort];
  const bool is_by_name = key == "function";
  std::ranges::stable_sort(rows, [&](const UprobeRow& a, const UprobeRow& b) {
    const UprobeRow &first = view.is_reversed ? b : a, &second = view.is_reversed ? a : b;
    if (is_by_name) return first.function < second.function;
    const double one = value_of(key, first), other = value_of(key, second);
    return one != other ? one > other : first.calls > second.calls;
  });
  return rows;
}

UprobeTable::UprobeTable(const UprobeView& view, size_t columns, term::Style style) : view_(view), style_(style), name_columns_(0) {
  for (const Field& field : kFields)
    if (view.has_latency || !field.needs_latency) fields_.push_back(&field);
  auto width = [&] {
    size_t sum = fields_.size() - 1;
    for (const Field* field : fields_) sum += field->columns;
    return sum;
  };
  while (width() + kLeastNameColumns * 2 > columns && fields_.size() > 3)
    fields_.erase(std::ranges::min_element(fields_, {}, [](const Field* f) { return f->importance; }));
  name_columns_ = columns > width() + kLeastNameColumns ? columns - width() : kLeastNameColumns;
}

std::string UprobeTable::header() const {
  std::string out;
  for (const Field* field : fields_) {
    const bool is_text = field->unit == Unit::kName || field->unit == Unit::kModule;
    const size_t columns = field->unit == Unit::kName ? name_columns_ : field->columns;
    const std::string title = is_text ? padded(field->title, columns) : right_aligned(field->title, columns);
    if (!out.empty()) out += style_.header(" ");
    out += uprobe_sort_keys()[view_.sort] == field->key ? style_.chosen(title) : style_.header(title);
  }
  return out;
}

std::string UprobeTable::cell(const Field& field, const UprobeRow& row) const {
  switch (field.unit) {
    case Unit::kName: return padded(shortened(printable(row.function), name_columns_), name_columns_);
    case Unit::kModule: return style_.faint(padded(shortened(printable(row.module), field.columns), field.columns));
    case Unit::kCount:
    case Unit::kRate: return right_aligned(count_text(value_of(field.key, row)), field.columns);
    case Unit::kTime: break;
  }
  return right_aligned(row.finished == 0 ? "." : duration_text(value_of(field.key, row)), field.columns);
}

std::string UprobeTable::line(const UprobeRow& row) const {
  std::string out;
  for (const Field* field : fields_) {
    if (field != fields_.front()) out += ' ';
    out += cell(*field, row);
  }
  return out;
}

std::vector<std::string> histogram_lines(const uprobe::LatencyHistogram& histogram, size_t columns) {
  constexpr size_t kBoundColumns = 9, kCountColumns = 12;
  const auto powers = histogram.by_powers();
  uint64_t most = 1;
  for (const auto& power : powers) most = std::max(most, power.count);
  const size_t room = columns > 2 * kBoundColumns + kCountColumns + 16 ? columns - 2 * kBoundColumns - kCountColumns - 8 : 8;
  std::vector<std::string> lines;
  for (const auto& power : powers) {
    const auto bar = static_cast<size_t>(static_cast<double>(power.count) / static_cast<double>(most) * static_cast<double>(room) + 0.5);
    lines.push_back(fmt::format("  {} - {} {}  {}", right_aligned(duration_text(static_cast<double>(power.from_ns)), kBoundColumns),
                                padded(duration_text(static_cast<double>(power.to_ns)), kBoundColumns),
                                right_aligned(grouped(static_cast<int64_t>(power.count)), kCountColumns), std::string(bar, '#')));
  }
  return lines;
}

}  // namespace cprof::cli
