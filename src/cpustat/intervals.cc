#include "cpustat/intervals.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace cprof::cpustat {
namespace {

// Sums only grow, but those of a state that goes on are estimates: what was told too early is not told again.
uint64_t advance(uint64_t& before, uint64_t now) {
  if (now <= before) return 0;
  const uint64_t difference = now - before;
  before = now;
  return difference;
}

void add(Row& to, const Row& from) {
  to.user_ns += from.user_ns;
  to.kernel_ns += from.kernel_ns;
  to.runnable_ns += from.runnable_ns;
  for (size_t i = 0; i < kWaitClasses; i++) to.waits_ns[i] += from.waits_ns[i];
  to.voluntary += from.voluntary;
  to.involuntary += from.involuntary;
  to.migrations += from.migrations;
  to.wakeups += from.wakeups;
}

void sort_by_id(std::vector<Row>& rows) {
  std::ranges::sort(rows, {}, [](const Row& row) { return std::pair(row.pid, row.tid); });
}

// Ticks are few in a short interval; where there was none, the thread goes on as it did.
double user_share(const ThreadSums& now, uint64_t user_ticks, uint64_t system_ticks, double before) {
  if (user_ticks + system_ticks > 0) return static_cast<double>(user_ticks) / static_cast<double>(user_ticks + system_ticks);
  if (before >= 0) return before;
  return now.is_kernel ? 0 : 1;
}

}  // namespace

uint64_t Row::off_ns() const { return std::accumulate(waits_ns.begin(), waits_ns.end(), uint64_t{0}); }

void Intervals::begin(uint64_t time_ns, const std::vector<ThreadSums>& threads) {
  known_.clear();
  for (const ThreadSums& sums : threads) known_[sums.tid] = {sums, -1, round_};
  time_ns_ = time_ns;
}

Row Intervals::row_of(const ThreadSums& now, Known& known) {
  ThreadSums& before = known.sums;
  Row row;
  row.pid = now.pid;
  row.tid = now.tid;
  row.comm = before.comm = now.comm;
  row.has_ended = now.has_ended;
  const uint64_t cpu = advance(before.cpu_ns, now.cpu_ns);
  const uint64_t user_ticks = advance(before.user_ns, now.user_ns), system_ticks = advance(before.system_ns, now.system_ns);
  known.user_share = user_share(now, user_ticks, system_ticks, known.user_share);
  row.user_ns = static_cast<uint64_t>(static_cast<double>(cpu) * known.user_share);
  row.kernel_ns = cpu - row.user_ns;
  row.runnable_ns = advance(before.runnable_ns, now.runnable_ns);
  for (size_t i = 0; i < kWaitClasses; i++) row.waits_ns[i] = advance(before.waits_ns[i], now.waits_ns[i]);
  row.voluntary = advance(before.voluntary, now.voluntary);
  row.involuntary = advance(before.involuntary, now.involuntary);
  row.migrations = advance(before.migrations, now.migrations);
  row.wakeups = advance(before.wakeups, now.wakeups);
  return row;
}

Interval Intervals::next(uint64_t time_ns, const std::vector<ThreadSums>& threads) {
  Interval interval{.start_ns = time_ns_, .end_ns = time_ns, .rows = {}};
  interval.rows.reserve(threads.size());
  round_++;
  for (const ThreadSums& now : threads) {
    auto [it, is_new] = known_.try_emplace(now.tid);
    if (is_new || it->second.sums.start_ns != now.start_ns) {
      it->second = {};
      it->second.sums.start_ns = now.start_ns;
    }
    const bool was_told = it->second.sums.has_ended;
    it->second.sums.has_ended = now.has_ended;
    it->second.round = round_;
    Row row = row_of(now, it->second);
    if (!was_told || row.cpu_ns() > 0) interval.rows.push_back(std::move(row));
  }
  std::erase_if(known_, [&](const auto& entry) { return entry.second.round != round_; });
  sort_by_id(interval.rows);
  time_ns_ = time_ns;
  return interval;
}

std::vector<Row> by_process(const std::vector<Row>& threads) {
  std::map<int32_t, Row> processes;
  for (const Row& thread : threads) {
    auto [it, is_new] = processes.try_emplace(thread.pid);
    Row& process = it->second;
    if (is_new) {
      process.pid = process.tid = thread.pid;
      process.threads = 0;
      process.has_ended = true;
    }
    if (is_new || thread.tid == thread.pid) process.comm = thread.comm;
    process.has_ended &= thread.has_ended;
    process.threads += thread.threads;
    add(process, thread);
  }
  std::vector<Row> rows;
  rows.reserve(processes.size());
  for (auto& [pid, process] : processes) rows.push_back(std::move(process));
  return rows;
}

void Totals::add(const Interval& interval) {
  length_ns_ += interval.length_ns();
  for (const Row& row : interval.rows) {
    const int64_t key = int64_t{row.pid} << 32 | static_cast<uint32_t>(row.tid);
    auto [it, is_new] = rows_.try_emplace(key);
    if (is_new) {
      it->second.pid = row.pid;
      it->second.tid = row.tid;
    }
    it->second.comm = row.comm;
    it->second.has_ended = row.has_ended;
    cpustat::add(it->second, row);
  }
}

std::vector<Row> Totals::rows() const {
  std::vector<Row> rows;
  rows.reserve(rows_.size());
  for (const auto& [key, row] : rows_) rows.push_back(row);
  sort_by_id(rows);
  return rows;
}

}  // namespace cprof::cpustat
