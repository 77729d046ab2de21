// The summary and the table. The tree has a file of its own, report_tree.cc.
#include "cli/report_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <ctime>
#include <numeric>

#include "analyze/quality.h"
#include "analyze/shares.h"
#include "analyze/site_totals.h"
#include "analyze/top.h"
#include "analyze/waits.h"
#include "base/digit_groups.h"
#include "cli/text_layout.h"
#include "timeline/timeline.h"

namespace cprof::cli {
namespace {

using analyze::Granularity;
using analyze::GroupName;
using analyze::Groups;
using analyze::SiteTotals;
using analyze::StackQuality;
using analyze::TopRow;
using analyze::Weights;
using profile::Profile;
using profile::StackEnd;

constexpr size_t kHottest = 5;
constexpr double kTooCostly = 0.05, kGoodCost = 0.02;  // of the target's CPU time
constexpr size_t kLabelColumns = 18;
// Diagnostics that are whole records or samples gone: their sum is the line "lost".
constexpr std::string_view kLosses[] = {"lost_records", "lost_samples"};

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double share_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string count_of(uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", grouped(static_cast<int64_t>(number)), number == 1 ? one : many);
}

std::string number(uint64_t value) { return grouped(static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX))); }

class Summary {
 public:
  Summary(const Profile& profile, const SummaryOptions& options)
      : p_(profile), options_(options), quality_(analyze::stack_quality(profile)) {}

  std::string text() {
    if (options_.show_origin) add_origin();
    add_samples();
    add_losses();
    add_stacks();
    add_names();
    add_cost();
    add_notes();
    add_hottest();
    add_waits();
    add_next();
    return std::move(out_);
  }

 private:
  void line(std::string_view label, std::string_view text) {
    out_ += paragraph(padded(fmt::format("{}:", label), kLabelColumns), text, options_.columns);
  }

  void add_origin() {
    if (!p_.run.source.empty()) line("file", printable(p_.run.source));
    if (!p_.run.command.empty()) line("recorded", printable(p_.run.command));
    std::string where = printable(p_.run.hostname);
    if (!p_.run.kernel_release.empty()) where += fmt::format(" (Linux {})", printable(p_.run.kernel_release));
    if (p_.run.start_realtime_ns != 0) {
      const auto seconds = static_cast<time_t>(p_.run.start_realtime_ns / 1'000'000'000);
      tm parts{};
      char text[64] = "";
      if (gmtime_r(&seconds, &parts) != nullptr) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
      where += fmt::format("{}{}", where.empty() ? "" : ", ", text);
    }
    if (!where.empty()) line("on", where);
  }

  // A run of ours, also when its samples were counted where they were taken and have no times.
  bool is_recording() const { return p_.timed() || !p_.run.kernel_release.empty(); }

  void add_samples() {
    if (!is_recording()) return add_values();
    std::string text = number(quality_.samples);
    const bool has_waits = !p_.off_cpu.empty() && analyze::find_metric(p_, profile::kOffCpuMetric).valid();
    const bool has_counts = !p_.timed() && p_.metrics.size() > 1;  // the last is the number of samples
    if (p_.metrics.size() == (has_waits || has_counts ? 2 : 1)) text += fmt::format(" of {}", printable(p_.text(p_.metrics[0].name)));
    if (p_.run.sampling_interval_ns != 0)
      text += fmt::format(" at {:.0f} Hz", 1e9 / static_cast<double>(p_.run.sampling_interval_ns));
    if (p_.run.end_ns > p_.run.start_ns)
      text += fmt::format(" in {}", duration_text(static_cast<double>(p_.run.end_ns - p_.run.start_ns)));
    if (!p_.timed() && !p_.aggregates.empty()) text += ", counted without times";
    text += fmt::format("; {}, {}", count_of(p_.threads.size(), "thread", "threads"),
                        count_of(p_.processes.size(), "process", "processes"));
    line("samples", text);
    if (!p_.timed()) return;
    const profile::MetricId waits = p_.off_cpu.empty() ? profile::MetricId() : analyze::find_metric(p_, profile::kOffCpuMetric);
    std::vector<uint64_t> counts(p_.metrics.size());
    for (const profile::Sample& s : p_.samples) ++counts[s.metric.index()];
    std::string each;
    for (size_t i = 0; i < counts.size(); ++i)
      if (profile::MetricId(i) != waits)
        each += fmt::format("{}{} {}", i ? ", " : "", printable(p_.text(p_.metrics[i].name)), number(counts[i]));
    if (counts.size() >= (waits.valid() ? 3 : 2)) line("  by metric", each);
    add_off_cpu();
  }

  // How long threads were off a CPU, and for what.
  void add_off_cpu() {
    if (p_.off_cpu.empty()) return;
    const analyze::WaitTotals totals = analyze::wait_totals(p_);
    std::vector<size_t> classes(totals.by_class.size());
    std::iota(classes.begin(), classes.end(), size_t{0});
    std::ranges::stable_sort(classes, std::ranges::greater{}, [&](size_t c) { return totals.by_class[c].ns; });
    std::string text = fmt::format("{} in {}", duration_text(static_cast<double>(totals.ns)),
                                   count_of(totals.waits, "wait", "waits"));
    for (size_t c : classes) {
      const analyze::WaitTotals::OfClass& row = totals.by_class[c];
      if (row.ns == 0) continue;
      text += fmt::format("{}{} {} ({})", c == classes.front() ? ": " : ", ", name_of(static_cast<profile::WaitClass>(c)),
                          duration_text(static_cast<double>(row.ns)), percent(share_of(row.ns, totals.ns)));
    }
    line("off the CPU", text);
  }

  void add_waits() {
    const auto rows = analyze::top_waits(p_, kHottest);
    if (rows.empty()) return;
    out_ += "\nlongest waits, by time off the CPU\n     time     times  for\n";
    for (const analyze::TopWait& row : rows)
      out_ += fmt::format(" {}  {}  {} {}\n", right_aligned(duration_text(static_cast<double>(row.ns)), 8),
                          right_aligned(number(row.count), 8), padded(std::string(name_of(row.wait_class)), 8),
                          shortened(printable(row.where), options_.columns - 32));
  }

  void add_values() {
    std::string names;
    for (const profile::Metric& m : p_.metrics)
      names +=
          fmt::format("{}{} ({})", names.empty() ? "" : ", ", printable(p_.text(m.name)), printable(p_.text(m.unit)));
    const bool is_of_slices = !p_.slices.empty();
    if (is_of_slices) {
      const uint64_t length = p_.run.end_ns - std::min(p_.run.end_ns, p_.run.start_ns);
      line("slices", fmt::format("{} in {}; {} marks, {} counter values", number(p_.slices.size()),
                                 duration_text(static_cast<double>(length)), number(p_.marks.size()),
                                 number(p_.counters.size())));
    }
    line("values", fmt::format("{} of {}, {}", number(p_.aggregates.size()), names,
                               is_of_slices ? "the slices' own time" : "without times"));
  }

  void add_losses() {
    if (!is_recording()) return;
    uint64_t lost = 0;
    std::string why;
    for (std::string_view name : kLosses) {
      const auto entry = p_.diagnostics.entries().find(name);
      if (entry == p_.diagnostics.entries().end()) continue;
      lost += entry->second.count;
      why += fmt::format("{}{}", why.empty() ? "" : "; ", printable(entry->second.description));
    }
    std::string text = number(lost);
    if (lost != 0) text += fmt::format(" ({}): {}", percent(share_of(lost, lost + quality_.samples)), why);
    line("lost", text);
  }

  void add_stacks() {
    if (quality_.unwound != 0)
      line("stacks complete", fmt::format("{} ({} of {}), {}", complete_percent(),
                                          number(quality_.unwound - quality_.incomplete), number(quality_.unwound),
                                          incomplete_text()));
    std::vector<size_t> ends(quality_.by_end.size());
    std::iota(ends.begin(), ends.end(), size_t{0});
    std::ranges::stable_sort(ends, std::ranges::greater{}, [&](size_t e) { return quality_.by_end[e]; });
    for (size_t e : ends) {
      const auto end = static_cast<StackEnd>(e);
      if (quality_.by_end[e] == 0 || !is_incomplete(end)) continue;
      const std::string label = fmt::format("  {}: {} ({}): ", name_of(end), number(quality_.by_end[e]),
                                            percent(share_of(quality_.by_end[e], quality_.unwound)));
      out_ += paragraph(label, description_of(end), options_.columns);
    }
    if (quality_.without_stack != 0)
      line("without a stack", fmt::format("{} ({}), counted on [unknown]", number(quality_.without_stack),
                                          percent(share_of(quality_.without_stack, quality_.samples))));
  }

  std::string incomplete_text() const {
    if (quality_.incomplete == 0) return "0 incomplete";
    return fmt::format("{} incomplete ({})", number(quality_.incomplete), percent(share_of(quality_.incomplete, quality_.unwound)));
  }

  // 100 % is said only of all: one stack in a million that is cut must not vanish in rounding.
  std::string complete_percent() const {
    const double complete = 1 - share_of(quality_.incomplete, quality_.unwound);
    return quality_.incomplete != 0 ? percent(std::min(complete, 0.999)) : percent(complete);
  }

  void add_names() {
    if (quality_.frames == 0) return;
    std::string text = fmt::format("{} ({} of {})", percent(share_of(quality_.unnamed_frames, quality_.frames)),
                                   number(quality_.unnamed_frames), number(quality_.frames));
    std::string modules;
    for (size_t i = 0; i < std::min<size_t>(3, quality_.unnamed_by_module.size()); ++i) {
      const std::string_view path = quality_.unnamed_by_module[i].path;
      modules += fmt::format("{}{}", i ? ", " : "", path.empty() ? "no file" : printable(profile::base_name(path)));
    }
    if (!modules.empty()) text += fmt::format(", most in {}", modules);
    line("frames unnamed", text);
  }

  uint64_t target_cpu_ns() const {
    uint64_t on_cpu = 0;
    for (const profile::SwitchInterval& on : p_.on_cpu) on_cpu += on.end_ns - on.start_ns;
    if (on_cpu != 0) return on_cpu;
    const profile::MetricId metric = analyze::default_metric(p_);
    if (!metric.valid() || !p_.metrics[metric.index()].is_time) return 0;
    const int64_t total = analyze::sample_weights(p_, {.kind = analyze::WeightSelection::Kind::kMetric}).total;
    return total > 0 ? static_cast<uint64_t>(total) : 0;
  }

  void add_cost() {
    if (p_.run.collector_cpu_ns == 0) return;
    const auto cost = static_cast<double>(p_.run.collector_cpu_ns);
    std::string text = fmt::format("{} of CPU", duration_text(cost));
    if (p_.run.bytes_read != 0) text += fmt::format(", {} read", bytes_text(static_cast<double>(p_.run.bytes_read)));
    if (quality_.samples != 0)
      text += fmt::format("; {} a sample", duration_text(cost / static_cast<double>(quality_.samples)));
    const uint64_t target = target_cpu_ns();
    const double of_target = share_of(p_.run.collector_cpu_ns, target);
    if (target != 0) text += fmt::format(", {} of the target's CPU time", percent(of_target));
    if (of_target > kTooCostly && p_.run.sampling_interval_ns != 0) {
      const double hz = 1e9 / static_cast<double>(p_.run.sampling_interval_ns);
      text += fmt::format("; -F {:.0f} would cost 2 %", std::max(1.0, std::floor(hz * kGoodCost / of_target)));
    }
    line("cost", text);
  }

  // Everything else that was lost, guessed or refused; what is only information stays in the recording.
  void add_notes() {
    for (const auto& [name, entry] : p_.diagnostics.entries()) {
      if (entry.severity == Severity::kInfo || entry.count == 0 || std::ranges::find(kLosses, name) != std::end(kLosses)) continue;
      std::string text = printable(entry.description);
      if (entry.count > 1) text = fmt::format("{} × {}", number(entry.count), text);
      if (!entry.example.empty()) text += fmt::format(" (first: {})", printable(entry.example));
      line(entry.severity == Severity::kDataLoss ? "data lost"
           : entry.severity == Severity::kError  ? "error"
                                                 : "note",
           text);
    }
  }

  void add_hottest() {
    const Weights weights = analyze::sample_weights(p_, {});
    if (weights.total == 0) return;
    const Groups groups(p_, Granularity::kFunctions);
    const auto rows = analyze::top_functions(p_, groups, analyze::sum_by_site(p_, weights));
    out_ += fmt::format("\nhottest functions, by {}\n     self     total\n", printable(weights.title));
    for (size_t i = 0; i < std::min(kHottest, rows.size()); ++i) {
      const GroupName name = groups.name(rows[i].group);
      const std::string module = name.module.empty() ? "" : "  " + shortened(printable(name.module), 30);
      const size_t room = options_.columns - 22 - columns_of(module);
      out_ += fmt::format(" {}  {}  {}{}\n", right_aligned(percent(share(rows[i].self, weights.total)), 8),
                          right_aligned(percent(share(rows[i].total, weights.total)), 8),
                          shortened(printable(name.text), room), module);
    }
  }

  void add_next() {
    auto has_ending = [](std::string_view path, std::initializer_list<std::string_view> endings) {
      return std::ranges::any_of(endings, [&](std::string_view e) { return path.ends_with(e); });
    };
    std::string_view readable, trace;
    for (const std::string& path : options_.outputs) {
      if (path == "-" || has_ending(path, {".svg", ".html"})) continue;
      std::string_view& slot = has_ending(path, {".pftrace", ".perfetto-trace"}) ? trace : readable;
      if (slot.empty()) slot = path;
    }
    if (readable.empty() && trace.empty()) return;
    out_ += '\n';
    if (!readable.empty()) return line("next", fmt::format("cprof view {0}, or cprof report {0}", quoted(readable)));
    line("next", fmt::format("open {} in https://ui.perfetto.dev", quoted(trace)));
  }

  static std::string quoted(std::string_view path) {
    const bool is_plain = std::ranges::all_of(
        path, [](char c) { return isalnum(static_cast<unsigned char>(c)) || strchr("/._-+=:,%@", c); });
    if (is_plain) return std::string(path);
    std::string out = "'";
    for (char c : path) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return printable(out + "'");
  }

  const Profile& p_;
  const SummaryOptions& options_;
  StackQuality quality_;
  std::string out_;
};

constexpr std::string_view kRowNames[] = {"function", "line", "address", "file"};

struct TopColumns {
  size_t self = 4, total = 5, name = 0, module = 6;
};

TopColumns fit_columns(const std::vector<std::string>& selves, const std::vector<std::string>& totals,
                       const std::vector<GroupName>& names, size_t width) {
  TopColumns columns;
  for (const auto& text : selves) columns.self = std::max(columns.self, columns_of(text));
  for (const auto& text : totals) columns.total = std::max(columns.total, columns_of(text));
  size_t longest = 8;
  for (const GroupName& name : names) {
    columns.module = std::max(columns.module, std::min<size_t>(24, columns_of(name.module)));
    longest = std::max(longest, columns_of(name.text));
  }
  const size_t used = 1 + columns.self + 9 + 3 + columns.total + 9 + 3 + 2 + columns.module;
  columns.name = std::min(longest, width > used + 20 ? width - used : 20);
  return columns;
}

}  // namespace

std::string render_summary(const Profile& profile, const SummaryOptions& options) {
  return Summary(profile, options).text();
}

Result<Weights> view_weights(const Profile& profile, analyze::WeightSelection::Kind kind, std::string_view metric) {
  analyze::WeightSelection selection{.kind = kind};
  if (!metric.empty()) {
    selection.metric = analyze::find_metric(profile, metric);
    std::string known;
    for (const profile::Metric& m : profile.metrics)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", printable(profile.text(m.name)));
    if (!selection.metric.valid()) return fail(fmt::format("no metric {}; there is: {}", printable(metric), known));
  }
  if (kind != analyze::WeightSelection::Kind::kWall) return analyze::sample_weights(profile, selection);
  if (!profile.timed()) {  // an import may have counted wall time for itself
    selection = {.kind = analyze::WeightSelection::Kind::kMetric, .metric = analyze::find_metric(profile, "wall")};
    if (selection.metric.valid()) return analyze::sample_weights(profile, selection);
    return fail("wall time needs samples with times, which this profile has not; use --weight samples");
  }
  timeline::Options options = timeline::default_options(profile);
  options.metric = selection.metric.valid() ? selection.metric : analyze::default_metric(profile);
  options.interval_ns = 0;
  const timeline::WallWeights wall = timeline::wall_weights(profile, options);
  selection.wall = wall.of_samples;
  selection.wall_off_cpu = wall.of_off_cpu;
  selection.wall_resumed = wall.of_resumed;
  return analyze::sample_weights(profile, selection);
}

std::string render_filter_note(const Weights& all, const Weights& shown) {
  const ValueScale scale(all.total, all.unit);
  return fmt::format("filters leave {} of {} {} ({})\n", scale.text(shown.total), scale.text(all.total),
                     printable(all.title), percent(share(shown.total, all.total)));
}

std::string render_top(const Profile& profile, const Weights& weights, const ViewOptions& options) {
  const Groups groups(profile, options.granularity);
  const std::vector<TopRow> rows = analyze::top_functions(profile, groups, analyze::sum_by_site(profile, weights));
  const int64_t whole = analyze::whole_of(weights);
  const ValueScale scale(whole, weights.unit);
  const size_t shown = std::min(options.max_rows, rows.size());
  std::vector<std::string> selves, totals;
  std::vector<GroupName> names;
  for (size_t i = 0; i < shown; ++i) {
    selves.push_back(scale.text(rows[i].self));
    totals.push_back(scale.text(rows[i].total));
    names.push_back(groups.name(rows[i].group));
    names.back().text = printable(names.back().text);
  }
  const TopColumns columns = fit_columns(selves, totals, names, options.columns);
  const std::string_view row_name = kRowNames[static_cast<size_t>(options.granularity)];
  std::string out = fmt::format("{} by self: {}, {} in all\n\n", name_of(options.granularity), printable(weights.title),
                                scale.text(weights.total));
  out += fmt::format(" {}            {}            {}  module\n", right_aligned("self", columns.self),
                     right_aligned("total", columns.total), padded(row_name, columns.name));
  int64_t listed = 0;
  for (size_t i = 0; i < shown; ++i) {
    listed = analyze::add_clamped(listed, rows[i].self);
    const std::string module = shortened(printable(names[i].module), columns.module);
    out += fmt::format(" {} {}   {} {}   {}{}{}\n", right_aligned(selves[i], columns.self),
                       right_aligned(percent(share(rows[i].self, whole)), 8),
                       right_aligned(totals[i], columns.total),
                       right_aligned(percent(share(rows[i].total, whole)), 8),
                       module.empty() ? shortened(names[i].text, columns.name)
                                      : padded(shortened(names[i].text, columns.name), columns.name),
                       module.empty() ? "" : "  ", module);
  }
  if (rows.size() > shown)
    out += fmt::format("\n and {} more, {} of the total\n", count_of(rows.size() - shown, "row", "rows"),
                       percent(1 - share(listed, whole)));
  return out;
}

}  // namespace cprof::cli
