// What shows the functions of a run of uprobe while it goes on: a table that is refreshed on a terminal and obeys keys, or
// tables one below the other, or nothing. Used by the verb.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/uprobe_table.h"
#include "term/line_input.h"
#include "term/scroller.h"
#include "term/terminal.h"

namespace cprof::cli {

struct UprobePicture {
  double seconds = 0;  // since the start
  std::vector<UprobeRow> rows{};
};

// wait() may return early; false: it was enough.
class UprobeScreen {
 public:
  virtual ~UprobeScreen() = default;
  virtual bool wait(int timeout_ms) = 0;
  virtual Result<void> show(UprobePicture picture) = 0;
  virtual uint64_t interval_ns() const = 0;
  virtual bool wants_pictures() const { return true; }
};

// Tables on stdout, or nothing when rows is 0. stopped: a signal asked to stop.
class UprobeBatch final : public UprobeScreen {
 public:
  UprobeBatch(UprobeView view, size_t rows, uint64_t interval_ns, std::function<bool()> stopped)
      : view_(std::move(view)), rows_(rows), interval_ns_(interval_ns), stopped_(std::move(stopped)) {}
  bool wait(int timeout_ms) override;
  Result<void> show(UprobePicture picture) override;
  uint64_t interval_ns() const override { return interval_ns_; }
  bool wants_pictures() const override { return rows_ > 0; }

 private:
  UprobeView view_;
  size_t rows_;
  uint64_t interval_ns_;
  std::function<bool()> stopped_;
};

class UprobeLive final : public UprobeScreen {
 public:
  // histogram_of: of a function, as it is now.
  using HistogramOf = std::function<uprobe::LatencyHistogram(uint32_t function)>;
  UprobeLive(std::unique_ptr<term::Terminal> terminal, UprobeView view, uint64_t interval_ns, std::string target, HistogramOf histogram_of);
  bool wait(int timeout_ms) override;
  Result<void> show(UprobePicture picture) override;
  uint64_t interval_ns() const override { return interval_ns_; }

 private:
  bool take(const term::Event& event);
  bool take_command(char character);
  void change_sort(int by);
  void apply_filter();
  void draw();
  void draw_rows(std::vector<std::string>& lines, size_t columns, size_t room);
  std::string top_line() const;
  std::string bottom_line() const;

  std::unique_ptr<term::Terminal> terminal_;
  term::Style style_;
  UprobeView view_;
  uint64_t interval_ns_;
  std::string target_;
  HistogramOf histogram_of_;
  UprobePicture last_;
  term::LineInput filter_;
  std::string filter_error_;
  term::Scroller scroller_;
  bool is_paused_ = false, shows_help_ = false, shows_histogram_ = false;
};

}  // namespace cprof::cli
