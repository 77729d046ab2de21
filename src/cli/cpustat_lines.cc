#include "cli/cpustat_lines.h"

#include <fmt/format.h>

#include <iterator>

#include "format/json/json_writer.h"

namespace cprof::cli {
namespace {

using cpustat::Interval;
using cpustat::Row;

// Runnable time has a column of its own.
bool is_wait(size_t wait_class) { return static_cast<profile::WaitClass>(wait_class) != profile::WaitClass::kSched; }

std::string_view name_of_class(size_t wait_class) { return profile::name_of(static_cast<profile::WaitClass>(wait_class)); }

// RFC 4180: a field with a quote, a comma or a line break is quoted, quotes are doubled.
void append_csv_text(std::string& out, std::string_view text) {
  if (text.find_first_of("\",\r\n") == text.npos) {
    out += text;
    return;
  }
  out += '"';
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

}  // namespace

std::string cpustat_json_line(const Interval& interval, const Row& row) {
  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{{\"ts_ns\":{},\"interval_ns\":{},\"pid\":{},\"tid\":{},\"comm\":", interval.end_ns, interval.length_ns(), row.pid, row.tid);
  format::append_json_text(out, row.comm);
  fmt::format_to(to, ",\"user_ns\":{},\"kernel_ns\":{},\"runnable_ns\":{},\"waits_ns\":{{", row.user_ns, row.kernel_ns, row.runnable_ns);
  bool is_first = true;
  for (size_t i = 0; i < cpustat::kWaitClasses; i++) {
    if (!is_wait(i)) continue;
    fmt::format_to(to, "{}\"{}\":{}", is_first ? "" : ",", name_of_class(i), row.waits_ns[i]);
    is_first = false;
  }
  fmt::format_to(to, "}},\"switches_voluntary\":{},\"switches_involuntary\":{},\"migrations\":{},\"wakeups\":{}}}\n", row.voluntary,
                 row.involuntary, row.migrations, row.wakeups);
  return out;
}

std::string cpustat_csv_header() {
  std::string out = "ts_ns,interval_ns,pid,tid,comm,user_ns,kernel_ns,runnable_ns";
  for (size_t i = 0; i < cpustat::kWaitClasses; i++)
    if (is_wait(i)) out += fmt::format(",{}_ns", name_of_class(i));
  return out + ",switches_voluntary,switches_involuntary,migrations,wakeups\n";
}

std::string cpustat_csv_line(const Interval& interval, const Row& row) {
  std::string out = fmt::format("{},{},{},{},", interval.end_ns, interval.length_ns(), row.pid, row.tid);
  append_csv_text(out, row.comm);
  out += fmt::format(",{},{},{}", row.user_ns, row.kernel_ns, row.runnable_ns);
  for (size_t i = 0; i < cpustat::kWaitClasses; i++)
    if (is_wait(i)) out += fmt::format(",{}", row.waits_ns[i]);
  return out + fmt::format(",{},{},{},{}\n", row.voluntary, row.involuntary, row.migrations, row.wakeups);
}

}  // namespace cprof::cli
