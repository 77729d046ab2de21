#include "cli/cpustat_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/digit_groups.h"
#include "cli/text_layout.h"

namespace cprof::cli {
namespace {

using cpustat::Row;
using profile::WaitClass;

constexpr size_t kIdColumns = 7, kLeastCommColumns = 8, kMostCommColumns = 20;

enum class Kind : uint8_t { kTime, kRate, kId, kName };

template <WaitClass kClass>
uint64_t wait_of(const Row& row) {
  return row.wait_ns(kClass);
}

struct SortKey {
  const char* name;
  uint64_t (*value)(const Row&);
};

// "comm" sorts by the name, ascending like the ids.
constexpr SortKey kSortKeys[] = {
    {"cpu", [](const Row& r) { return r.cpu_ns(); }},
    {"user", [](const Row& r) { return r.user_ns; }},
    {"kernel", [](const Row& r) { return r.kernel_ns; }},
    {"runnable", [](const Row& r) { return r.runnable_ns; }},
    {"futex", wait_of<WaitClass::kFutex>},
    {"lock", wait_of<WaitClass::kLock>},
    {"poll", wait_of<WaitClass::kPoll>},
    {"sleep", wait_of<WaitClass::kSleep>},
    {"io", wait_of<WaitClass::kIo>},
    {"network", wait_of<WaitClass::kNetwork>},
    {"memory", wait_of<WaitClass::kMemory>},
    {"other", wait_of<WaitClass::kOther>},
    {"voluntary", [](const Row& r) { return r.voluntary; }},
    {"involuntary", [](const Row& r) { return r.involuntary; }},
    {"migrations", [](const Row& r) { return r.migrations; }},
    {"wakeups", [](const Row& r) { return r.wakeups; }},
    {"pid", [](const Row& r) { return static_cast<uint64_t>(r.pid); }},
    {"tid", [](const Row& r) { return static_cast<uint64_t>(r.tid); }},
    {"comm", [](const Row&) { return uint64_t{0}; }},
};

bool sorts_up(std::string_view key) { return key == "pid" || key == "tid" || key == "comm"; }

double share(uint64_t ns, uint64_t interval_ns) {
  return interval_ns == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(interval_ns);
}

// "12.3", "100", and "." for nothing, so that the eye finds what there is.
std::string share_text(double share) {
  const double value = 100 * share;
  if (value < 0.05) return value <= 0 ? "." : "0.0";
  return value < 99.95 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

std::string rate_text(double value) {
  if (value < 0.05) return ".";
  if (value < 9.95) return fmt::format("{:.1f}", value);
  if (value < 99'999.5) return fmt::format("{:.0f}", value);
  return fmt::format("{:.0f}k", value / 1000);
}

}  // namespace

struct CpustatTable::Field {
  const char* title;
  const char* key;      // of kSortKeys
  Kind kind;
  size_t columns;
  uint8_t importance;   // the least important go first where there is no room
};

const CpustatTable::Field CpustatTable::kFields[] = {
    {"PID", "pid", Kind::kId, kIdColumns, 9},
    {"TID", "tid", Kind::kId, kIdColumns, 8},
    {"COMMAND", "comm", Kind::kName, 0, 9},
    {"CPU%", "cpu", Kind::kTime, 6, 9},
    {"user", "user", Kind::kTime, 6, 8},
    {"kernel", "kernel", Kind::kTime, 6, 8},
    {"runnable", "runnable", Kind::kTime, 8, 7},
    {"futex", "futex", Kind::kTime, 6, 6},
    {"lock", "lock", Kind::kTime, 6, 4},
    {"poll", "poll", Kind::kTime, 6, 6},
    {"sleep", "sleep", Kind::kTime, 6, 6},
    {"io", "io", Kind::kTime, 6, 6},
    {"network", "network", Kind::kTime, 7, 5},
    {"memory", "memory", Kind::kTime, 6, 4},
    {"other", "other", Kind::kTime, 6, 5},
    {"vol/s", "voluntary", Kind::kRate, 6, 3},
    {"invol/s", "involuntary", Kind::kRate, 7, 3},
    {"migr/s", "migrations", Kind::kRate, 6, 1},
    {"wake/s", "wakeups", Kind::kRate, 6, 2},
};

const std::vector<std::string>& cpustat_sort_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> names;
    for (const SortKey& key : kSortKeys) names.emplace_back(key.name);
    return names;
  }();
  return keys;
}

std::vector<Row> shown_rows(const TableView& view, const std::vector<Row>& threads) {
  std::vector<Row> rows = view.by_process ? cpustat::by_process(threads) : threads;
  std::erase_if(rows, [&](const Row& row) {
    if (view.hides_idle && row.cpu_ns() == 0) return true;
    return view.filter && !view.filter->found_in(fmt::format("{} {} {}", row.pid, row.tid, row.comm));
  });
  const SortKey& key = kSortKeys[view.sort];
  const bool is_up = sorts_up(key.name) != view.is_reversed;
  auto is_before = [&](const Row& a, const Row& b) {
    if (std::string_view(key.name) == "comm") return is_up ? a.comm < b.comm : b.comm < a.comm;
    return is_up ? key.value(a) < key.value(b) : key.value(b) < key.value(a);
  };
  std::ranges::stable_sort(rows, is_before);
  return rows;
}

CpustatTable::CpustatTable(const TableView& view, uint64_t interval_ns, size_t columns, term::Style style)
    : view_(view), interval_ns_(interval_ns), style_(style), comm_columns_(kMostCommColumns) {
  for (const Field& field : kFields)
    if (!(view.by_process && field.kind == Kind::kId && std::string_view(field.key) == "tid")) fields_.push_back(&field);
  auto width = [&] {
    size_t sum = fields_.size() - 1;
    for (const Field* field : fields_) sum += field->kind == Kind::kName ? comm_columns_ : field->columns;
    return sum;
  };
  while (width() > columns) {
    const size_t over = width() - columns;
    const auto least = std::ranges::min_element(fields_, {}, [](const Field* f) { return f->importance; });
    if (comm_columns_ > kLeastCommColumns) comm_columns_ -= std::min(over, comm_columns_ - kLeastCommColumns);
    else if (fields_.size() > 3) fields_.erase(least);
    else break;
  }
  if (width() < columns) comm_columns_ = std::min(kMostCommColumns, comm_columns_ + columns - width());
}

std::string CpustatTable::header() const {
  std::string out;
  for (const Field* field : fields_) {
    const std::string title = field->kind == Kind::kName ? padded(field->title, comm_columns_) : right_aligned(field->title, field->columns);
    const bool is_sorted = cpustat_sort_keys()[view_.sort] == field->key;
    if (!out.empty()) out += style_.header(" ");
    out += is_sorted ? style_.chosen(title) : style_.header(title);
  }
  return out;
}

std::string CpustatTable::cell(const Field& field, const Row& row) const {
  const std::string_view key = field.key;
  if (field.kind == Kind::kName) {
    const std::string name = view_.by_process && row.threads > 1 ? fmt::format("{} ({})", row.comm, row.threads) : row.comm;
    const std::string text = padded(shortened(printable(name), comm_columns_), comm_columns_);
    return row.has_ended ? style_.faint(text) : text;
  }
  if (field.kind == Kind::kId) return right_aligned(std::to_string(key == "pid" ? row.pid : row.tid), field.columns);
  const auto* found = std::ranges::find(kSortKeys, key, [](const SortKey& k) { return std::string_view(k.name); });
  const uint64_t value = found->value(row);
  if (field.kind == Kind::kRate)
    return right_aligned(rate_text(interval_ns_ == 0 ? 0 : 1e9 * static_cast<double>(value) / static_cast<double>(interval_ns_)), field.columns);
  const double part = share(value, interval_ns_);
  const std::string text = right_aligned(share_text(part), field.columns);
  if (part < 0.0005) return style_.faint(text);
  const bool is_busy = key == "cpu" || key == "user" || key == "kernel";
  if (key == "runnable") return part > 0.2 ? style_.hot(text) : part > 0.05 ? style_.warm(text) : text;
  if (is_busy) return part > 0.8 ? style_.hot(text) : part > 0.3 ? style_.warm(text) : text;
  return part > 0.5 ? style_.cool(text) : text;
}

std::string CpustatTable::line(const Row& row) const {
  std::string out;
  for (const Field* field : fields_) {
    if (field != fields_.front()) out += ' ';
    out += cell(*field, row);
  }
  return out;
}

std::string cpustat_sum_text(const std::vector<Row>& rows, uint64_t interval_ns) {
  Row sum;
  for (const Row& row : rows) {
    sum.user_ns += row.user_ns;
    sum.kernel_ns += row.kernel_ns;
    sum.runnable_ns += row.runnable_ns;
    sum.voluntary += row.voluntary;
    sum.involuntary += row.involuntary;
  }
  const double seconds = std::max(1e-9, static_cast<double>(interval_ns) / 1e9);
  return fmt::format("user {}, kernel {}, runnable {} of a CPU; {} switches/s", percent(share(sum.user_ns, interval_ns)),
                     percent(share(sum.kernel_ns, interval_ns)), percent(share(sum.runnable_ns, interval_ns)),
                     grouped(static_cast<int64_t>(static_cast<double>(sum.voluntary + sum.involuntary) / seconds)));
}

}  // namespace cprof::cli
