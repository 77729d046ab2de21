#include "cli/diff_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analyze/weights.h"
#include "cli/text_layout.h"

namespace cprof::cli {
namespace {

using analyze::Change;
using analyze::Diff;
using analyze::DiffRow;
using analyze::Normalize;

constexpr size_t kValueColumns = 11;
constexpr size_t kNameLeast = 30;
constexpr std::array<std::string_view, 3> kCompared = {
    "values are compared as they are", "shares of the totals are compared", "values per second are compared"};
constexpr std::array<std::string_view, 4> kRowNames = {"function", "line", "address", "file"};

double share(double part, double whole) { return whole == 0 ? 0 : part / std::abs(whole); }

std::string signed_percent(double share) {
  const std::string text = percent(share);
  return share > 0 && text != "0.0 %" ? "+" + text : text;
}

// Three digits behind the point of small ratios, so that cycles per instruction can be read off.
std::string ratio_text(double before, double after) {
  if (before == 0) return "new";
  const double ratio = after / before;
  const double size = std::abs(ratio);
  return fmt::format("×{:.{}f}", ratio, size < 9.9995 ? 3 : size < 99.995 ? 2 : 0);
}

class DiffText {
 public:
  DiffText(const Diff& diff, const DiffViewOptions& options)
      : diff_(diff),
        options_(options),
        scale_(std::max(std::abs(diff.total_before), std::abs(diff.total_after)), options.unit) {}

  std::string text() {
    head();
    const auto first_noise = std::ranges::find(diff_.rows, Change::kWithinNoise, &DiffRow::change);
    const auto changed = static_cast<size_t>(first_noise - diff_.rows.begin());
    columns();
    rows(0, changed);
    if (changed == 0) out_ += " nothing changed by more than the noise\n";
    if (changed == diff_.rows.size()) return std::move(out_);
    out_ += fmt::format("\n within the noise: {} of {} rows\n", diff_.rows.size() - changed, diff_.rows.size());
    rows(changed, diff_.rows.size());
    return std::move(out_);
  }

 private:
  void head() {
    out_ += fmt::format("before: {} ({})\nafter:  {} ({})\n", printable(options_.before_name), scale_.text(diff_.total_before),
                        printable(options_.after_name), scale_.text(diff_.total_after));
    out_ += fmt::format("{} by {}: {}; {}\n", name_of(options_.granularity), options_.by_total ? "total" : "self",
                        printable(options_.title), kCompared[static_cast<size_t>(options_.normalize)]);
    if (options_.rate_scale != 1)
      out_ += fmt::format("the sampling rates differ: a sample of before counts {:.4g} in the columns of values\n", options_.rate_scale);
    out_ += paragraph("noise:  ",
                      diff_.knows_counts
                          ? "a difference of up to two standard deviations of the sample counts, or of 0.1 % of the total"
                          : "a difference of up to 0.1 % of the total; how many samples are behind the values is not known",
                      options_.columns);
  }

  void columns() {
    out_ += fmt::format("\n {:<6} {:>9} {:>8} {:>8} {:>{}} {:>{}} {:>{}} {:>8}  {}\n", "", "change", "before", "after", "before",
                        kValueColumns, "after", kValueColumns, "delta", kValueColumns, "ratio",
                        kRowNames[static_cast<size_t>(options_.granularity)]);
  }

  void rows(size_t first, size_t end) {
    const size_t shown_end = std::min(end, first + options_.max_rows);
    for (size_t i = first; i < shown_end; ++i) row(diff_.rows[i]);
    if (shown_end < end) out_ += fmt::format(" and {} more (--rows)\n", end - shown_end);
  }

  void row(const DiffRow& row) {
    const double rated_before = static_cast<double>(row.before) * options_.rate_scale;
    const auto total_before = static_cast<double>(diff_.total_before), total_after = static_cast<double>(diff_.total_after);
    const double whole = total_after != 0 ? total_after : total_before * diff_.scale;
    const auto delta = static_cast<int64_t>(std::llround(std::clamp(static_cast<double>(row.after) - rated_before, -9.2e18, 9.2e18)));
    const std::string module = row.module.empty() ? "" : "  " + shortened(printable(row.module), 24);
    const size_t used = 1 + 6 + 1 + 9 + 2 * 9 + 3 * (kValueColumns + 1) + 9 + 2 + columns_of(module);
    const size_t room = options_.columns > used + kNameLeast ? options_.columns - used : kNameLeast;
    out_ += fmt::format(" {:<6} {} {} {} {} {} {} {}  {}{}\n", row.change == Change::kWithinNoise ? "" : name_of(row.change),
                        right_aligned(signed_percent(share(row.delta(), whole)), 9),
                        right_aligned(percent(share(static_cast<double>(row.before), total_before)), 8),
                        right_aligned(percent(share(static_cast<double>(row.after), total_after)), 8),
                        right_aligned(scale_.text(row.before), kValueColumns), right_aligned(scale_.text(row.after), kValueColumns),
                        right_aligned((delta > 0 ? "+" : "") + scale_.text(delta), kValueColumns),
                        right_aligned(ratio_text(rated_before, static_cast<double>(row.after)), 8),
                        shortened(printable(row.name), room), module);
  }

  const Diff& diff_;
  const DiffViewOptions& options_;
  ValueScale scale_;
  std::string out_;
};

}  // namespace

std::string render_diff(const Diff& diff, const DiffViewOptions& options) { return DiffText(diff, options).text(); }

}  // namespace cprof::cli
