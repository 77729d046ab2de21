#include "cli/cpustat_screens.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/text_layout.h"

namespace cprof::cli {
namespace {

using cpustat::Interval;
using cpustat::Row;
using term::Key;

constexpr size_t kBatchColumns = 150;
constexpr uint64_t kLeastIntervalNs = 100'000'000, kMostIntervalNs = 60'000'000'000;

size_t count_running(const std::vector<Row>& rows) {
  return static_cast<size_t>(std::ranges::count_if(rows, [](const Row& row) { return row.cpu_ns() > 0; }));
}

std::string interval_text(const Interval& interval) {
  return fmt::format("{}: {} threads, {} of them on a CPU; {}", duration_text(static_cast<double>(interval.length_ns())),
                     interval.rows.size(), count_running(interval.rows), cpustat_sum_text(interval.rows, interval.length_ns()));
}

constexpr const char* kHelp[] = {
    "left, right or < >   sort by the column before, behind",
    "r                    the other way round",
    "p                    threads or processes",
    "i                    without threads that were not on a CPU",
    "/                    show rows whose pid, tid or name a regular expression finds",
    "space                pause, and go on",
    "+ -                  longer, shorter intervals",
    "up, down, page keys  scroll; home is the top",
    "h or ?               this text",
    "q                    quit",
    "",
    "Shares are of the interval. runnable: ready, but no CPU was free. futex, lock, poll, ...: what it waited for.",
};

}  // namespace

bool CpustatBatch::wait(int timeout_ms) {
  poll(nullptr, 0, timeout_ms);
  return !stopped_();
}

Result<void> CpustatBatch::show(const Interval& interval) {
  TRY(also_(interval));
  if (rows_ == 0) return {};
  const std::vector<Row> rows = shown_rows(view_, interval.rows);
  const CpustatTable table(view_, interval.length_ns(), kBatchColumns, term::Style(false));
  std::string out = interval_text(interval) + "\n" + table.header() + "\n";
  for (size_t i = 0; i < std::min(rows_, rows.size()); i++) out += table.line(rows[i]) + "\n";
  if (rows.size() > rows_) out += fmt::format("and {} more (--rows)\n", rows.size() - rows_);
  fmt::print("{}\n", out);
  return fflush(stdout) == 0 ? Result<void>() : fail_errno("stdout");
}

CpustatLive::CpustatLive(std::unique_ptr<term::Terminal> terminal, TableView view, uint64_t interval_ns, std::string target,
                         OnInterval also)
    : terminal_(std::move(terminal)), style_(term::wants_colour(STDOUT_FILENO)), view_(std::move(view)), interval_ns_(interval_ns),
      target_(printable(target)), also_(std::move(also)) {
  if (view_.filter) filter_.begin(std::string(view_.filter->text())), filter_.take({Key::kEnter});
  draw();
}

Result<void> CpustatLive::show(const Interval& interval) {
  TRY(also_(interval));
  if (is_paused_) return {};
  last_ = interval;
  draw();
  return {};
}

// Keys that are there already are all taken before the screen is drawn.
bool CpustatLive::wait(int timeout_ms) {
  bool has_changed = false;
  for (term::Event event = terminal_->wait(timeout_ms); event.key != Key::kNone; event = terminal_->wait(0)) {
    if (!take_key(event)) return false;
    has_changed = true;
  }
  if (has_changed) draw();
  return !terminal_->stop_requested();
}

bool CpustatLive::take_key(const term::Event& event) {
  if (event.key == Key::kClosed) return false;
  if (filter_.is_active()) {
    filter_.take(event);
    apply_filter(filter_.text());
    return true;
  }
  if (event.key == Key::kCharacter) return take_command(event.character);
  if (event.key == Key::kEscape) shows_help_ = false;
  return take_movement(event.key);
}

bool CpustatLive::take_command(char character) {
  switch (character) {
    case 'q': return false;
    case ' ': is_paused_ = !is_paused_; break;
    case '<': change_sort(-1); break;
    case '>': change_sort(1); break;
    case 'r': view_.is_reversed = !view_.is_reversed; break;
    case 'p': view_.by_process = !view_.by_process; break;
    case 'i': view_.hides_idle = !view_.hides_idle; break;
    case '/': filter_.begin(filter_.text()); break;
    case '+': change_interval(2); break;
    case '-': change_interval(0.5); break;
    case 'h':
    case '?': shows_help_ = !shows_help_; break;
    default: break;
  }
  return true;
}

bool CpustatLive::take_movement(Key key) {
  if (key == Key::kLeft) change_sort(-1);
  else if (key == Key::kRight) change_sort(1);
  else scroller_.take(key);
  return true;
}

// As the columns stand: the keys of --sort begin with cpu and end with pid, tid, comm, which stand first.
void CpustatLive::change_sort(int by) {
  const size_t count = cpustat_sort_keys().size();
  view_.sort = (view_.sort + count + static_cast<size_t>(by + static_cast<int>(count))) % count;
  if (view_.by_process && cpustat_sort_keys()[view_.sort] == "tid") change_sort(by);
}

void CpustatLive::change_interval(double factor) {
  interval_ns_ = std::clamp(static_cast<uint64_t>(static_cast<double>(interval_ns_) * factor), kLeastIntervalNs, kMostIntervalNs);
}

// While it is typed an expression may be no expression yet: then the one before holds.
void CpustatLive::apply_filter(const std::string& text) {
  filter_error_.clear();
  if (text.empty()) return view_.filter.reset();
  auto pattern = analyze::Pattern::compile(text);
  if (pattern) view_.filter = std::move(*pattern);
  else filter_error_ = pattern.error().message;
}

std::string CpustatLive::top_line() const {
  const std::string head = fmt::format("cprof cpustat {}{}  ", target_, is_paused_ ? "  PAUSED" : "");
  return head + (last_.end_ns == 0 ? fmt::format("first figures after {}", duration_text(static_cast<double>(interval_ns_))) : interval_text(last_));
}

std::string CpustatLive::bottom_line(size_t columns) const {
  if (filter_.is_active() || !filter_error_.empty())
    return shortened(printable("filter: " + filter_.text() + (filter_.is_active() ? "_" : "") + (filter_error_.empty() ? "" : "  " + filter_error_)), columns);
  const std::string filter = filter_.text().empty() ? "" : "  filter: " + printable(filter_.text());
  return shortened(fmt::format("q quit  space pause  < > sort: {}{}  p {}  i {}  / filter  h help{}", cpustat_sort_keys()[view_.sort],
                               view_.is_reversed ? " reversed" : "", view_.by_process ? "threads" : "processes",
                               view_.hides_idle ? "all" : "busy only", filter),
                   columns);
}

std::vector<std::string> CpustatLive::help_lines() const {
  std::vector<std::string> lines;
  for (const char* line : kHelp) lines.emplace_back(line);
  return lines;
}

void CpustatLive::draw() {
  const auto [columns, height] = terminal_->size();
  std::vector<std::string> lines;
  lines.push_back(style_.title(shortened(top_line(), columns)));
  if (shows_help_) {
    for (const std::string& line : help_lines())
      if (lines.size() + 1 < height) lines.push_back(shortened(line, columns));
  } else {
    const std::vector<Row> rows = shown_rows(view_, last_.rows);
    scroller_.fit(rows.size(), height > 3 ? height - 3 : 1);
    const CpustatTable table(view_, last_.length_ns(), columns, style_);
    lines.push_back(table.header());
    for (size_t i = scroller_.first(); i < scroller_.end(); i++) lines.push_back(table.line(rows[i]));
  }
  while (lines.size() + 1 < height) lines.emplace_back();
  if (lines.size() < height) lines.push_back(style_.faint(bottom_line(columns)));
  lines.resize(std::min(lines.size(), height));
  terminal_->draw(std::move(lines));
}

}  // namespace cprof::cli
