#include "cli/uprobe_screens.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/digit_groups.h"
#include "cli/text_layout.h"

namespace cprof::cli {
namespace {

constexpr size_t kUprobeBatchColumns = 150, kHistogramRows = 14;
constexpr uint64_t kShortestIntervalNs = 100'000'000, kLongestIntervalNs = 60'000'000'000;

std::string sum_text(const UprobePicture& picture) {
  uint64_t calls = 0, called = 0;
  double rate = 0;
  for (const UprobeRow& row : picture.rows) {
    calls += row.calls;
    called += row.calls > 0;
    rate += row.calls_per_s;
  }
  return fmt::format("after {:.1f} s: {} calls of {} of {} functions, {} calls/s", picture.seconds, grouped(static_cast<int64_t>(calls)), called,
                     picture.rows.size(), grouped(static_cast<int64_t>(rate)));
}

constexpr const char* kUprobeHelp[] = {
    "left, right or < >   sort by the column before, behind",
    "r                    the other way round",
    "d                    how the latencies of the first row are spread",
    "/                    only functions whose name or module a regular expression finds",
    "space                pause, and go on",
    "+ -                  longer, shorter between two pictures",
    "up, down, page keys  scroll; home is the top",
    "h or ?               this text",
    "q                    quit",
    "",
    "Times are without what the probes cost. unwound: left by an exception or longjmp. running: not ended yet.",
};

}  // namespace

bool UprobeBatch::wait(int timeout_ms) {
  poll(nullptr, 0, timeout_ms);
  return !stopped_();
}

Result<void> UprobeBatch::show(UprobePicture picture) {
  std::string out = sum_text(picture) + "\n";
  const std::vector<UprobeRow> rows = shown_functions(view_, std::move(picture.rows));
  const UprobeTable table(view_, kUprobeBatchColumns, term::Style(false));
  out += table.header() + "\n";
  for (size_t i = 0; i < std::min(rows_, rows.size()); i++) out += table.line(rows[i]) + "\n";
  if (rows.size() > rows_) out += fmt::format("and {} more (--rows)\n", rows.size() - rows_);
  fmt::print("{}\n", out);
  return fflush(stdout) == 0 ? Result<void>() : fail_errno("stdout");
}

UprobeLive::UprobeLive(std::unique_ptr<term::Terminal> terminal, UprobeView view, uint64_t interval_ns, std::string target, HistogramOf histogram_of)
    : terminal_(std::move(terminal)), style_(term::wants_colour(STDOUT_FILENO)), view_(std::move(view)), interval_ns_(interval_ns),
      target_(printable(target)), histogram_of_(std::move(histogram_of)) {
  draw();
}

bool UprobeLive::wait(int timeout_ms) {
  bool is_due = false;
  term::Event event = terminal_->wait(timeout_ms);
  while (event.key != term::Key::kNone) {
    if (!take(event)) return false;
    is_due = true;
    event = terminal_->wait(0);
  }
  if (is_due) draw();
  return !terminal_->stop_requested();
}

Result<void> UprobeLive::show(UprobePicture picture) {
  if (!is_paused_) last_ = std::move(picture);
  draw();
  return {};
}

bool UprobeLive::take(const term::Event& event) {
  using term::Key;
  if (event.key == Key::kClosed) return false;
  if (filter_.is_active()) {
    filter_.take(event);
    apply_filter();
  } else if (event.key == Key::kCharacter) {
    return take_command(event.character);
  } else if (event.key == Key::kLeft || event.key == Key::kRight) {
    change_sort(event.key == Key::kLeft ? -1 : 1);
  } else if (event.key == Key::kEscape) {
    shows_help_ = shows_histogram_ = false;
  } else {
    scroller_.take(event.key);
  }
  return true;
}

bool UprobeLive::take_command(char character) {
  switch (character) {
    case 'q': return false;
    case ' ': is_paused_ = !is_paused_; break;
    case '<': change_sort(-1); break;
    case '>': change_sort(1); break;
    case 'r': view_.is_reversed = !view_.is_reversed; break;
    case 'd': shows_histogram_ = !shows_histogram_ && view_.has_latency; break;
    case '/': filter_.begin(filter_.text()); break;
    case '+': interval_ns_ = std::min(interval_ns_ * 2, kLongestIntervalNs); break;
    case '-': interval_ns_ = std::max(interval_ns_ / 2, kShortestIntervalNs); break;
    case 'h':
    case '?': shows_help_ = !shows_help_; break;
    default: break;
  }
  return true;
}

void UprobeLive::change_sort(int by) {
  const auto count = static_cast<int>(uprobe_sort_keys().size());
  view_.sort = static_cast<size_t>((static_cast<int>(view_.sort) + by + count) % count);
}

// What is no expression yet leaves the rows as they were.
void UprobeLive::apply_filter() {
  auto pattern = analyze::Pattern::compile(filter_.text());
  filter_error_ = pattern ? "" : pattern.error().message;
  if (filter_.text().empty()) view_.filter.reset();
  else if (pattern) view_.filter = std::move(*pattern);
}

std::string UprobeLive::top_line() const {
  return fmt::format("cprof uprobe {}{}  {}", target_, is_paused_ ? "  PAUSED" : "", last_.rows.empty() ? "waiting for calls" : sum_text(last_));
}

std::string UprobeLive::bottom_line() const {
  if (filter_.is_active()) return fmt::format("filter: {}_  {}", filter_.text(), filter_error_);
  return fmt::format("q quit  space pause  < > sort: {}{}  d histogram  / filter  h help{}{}", uprobe_sort_keys()[view_.sort],
                     view_.is_reversed ? " reversed" : "", filter_.text().empty() ? "" : "  filter: ", filter_.text());
}

void UprobeLive::draw_rows(std::vector<std::string>& lines, size_t columns, size_t room) {
  const std::vector<UprobeRow> rows = shown_functions(view_, last_.rows);
  std::vector<std::string> histogram;
  if (shows_histogram_ && !rows.empty()) {
    const UprobeRow& first = rows[std::min(scroller_.first(), rows.size() - 1)];
    histogram = histogram_lines(histogram_of_(first.number), columns);
    if (histogram.size() > kHistogramRows) histogram.resize(kHistogramRows);
    histogram.insert(histogram.begin(), style_.title(shortened(printable(first.function), columns)));
  }
  const UprobeTable table(view_, columns, style_);
  lines.push_back(table.header());
  const size_t below = std::min(histogram.size(), room > 4 ? room - 4 : 0);
  scroller_.fit(rows.size(), room > below + 1 ? room - below - 1 : 1);
  for (size_t i = scroller_.first(); i < scroller_.end(); i++) lines.push_back(table.line(rows[i]));
  lines.insert(lines.end(), histogram.begin(), histogram.begin() + static_cast<ptrdiff_t>(below));
}

void UprobeLive::draw() {
  const auto [columns, height] = terminal_->size();
  std::vector<std::string> lines = {style_.title(shortened(top_line(), columns))};
  if (!shows_help_) draw_rows(lines, columns, height > 2 ? height - 2 : 1);
  for (size_t i = 0; shows_help_ && i < std::size(kUprobeHelp); i++) lines.push_back(shortened(kUprobeHelp[i], columns));
  lines.resize(height > 0 ? height - 1 : 0);
  lines.push_back(style_.faint(shortened(printable(bottom_line()), columns)));
  terminal_->draw(std::move(lines));
}

}  // namespace cprof::cli
