// One sampled profile for each thread and metric. The format tells times by summing weights, so where a thread did not
// run, an empty stack lasts until its next sample. What the format has no place for (ids, the metric's own name) stands
// in a member "cprof" that others skip.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/frames.h"
#include "analyze/weights.h"
#include "format/json/json_writer.h"
#include "format/speedscope/speedscope.h"
#include "format/speedscope/speedscope_values.h"
#include "format/values.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

using profile::Profile;

struct Row {
  profile::ThreadId thread;
  profile::CallSiteId site;
  profile::StackEnd end;
  int64_t weight;
  uint64_t time_ns;  // kNoTime: none
  static constexpr uint64_t kNoTime = UINT64_MAX;
};

// What one profile of the file counts.
struct Column {
  profile::MetricId metric;
  std::string_view name, unit;
  ValueChoice choice;
};

std::vector<Row> rows_of(const Profile& profile, const Column& column) {
  std::vector<Row> rows;
  if (column.choice.kind != ValueChoice::Kind::kWeight) {
    for_each_value(profile, column.choice, [&](const StackValue& v) {
      rows.push_back({v.thread, v.site, v.end, v.value, Row::kNoTime});
    });
  } else {
    for (const profile::Sample& s : profile.samples)
      if (s.metric == column.metric) rows.push_back({s.thread, s.site, s.end, s.weight, s.time_ns});
    if (counts_off_cpu(profile, column.metric))
      for (const profile::OffCpuInterval& off : profile.off_cpu)
        rows.push_back({off.thread, off.site, off.end, profile::off_cpu_value(off), off.start_ns});
    for (const profile::Aggregate& row : profile.aggregates)
      if (row.metric == column.metric) rows.push_back({row.thread, row.site, row.end, row.value, Row::kNoTime});
  }
  std::ranges::stable_sort(rows, {}, [](const Row& row) { return std::pair(row.thread, row.time_ns); });
  return rows;
}

class SpeedscopeWriter {
 public:
  SpeedscopeWriter(const Profile& profile, PackedOutput& out) : profile_(profile), json_(out), walker_(profile) {}

  Result<void> write(const std::vector<Column>& columns) {
    json_.begin_object();
    json_.text("$schema", "https://www.speedscope.app/file-format-schema.json");
    json_.text("exporter", "cprof@" CPROF_VERSION);
    json_.text("name", profile_.run.command.empty() ? profile::base_name(profile_.run.source)
                                              : std::string_view(profile_.run.command));
    json_.begin_array("profiles");
    for (const Column& column : columns) write_column(column);
    json_.end_array();
    json_.begin_object("shared");
    write_frames();
    json_.end_object();
    json_.end_object();
    json_.line_break();
    return json_.finish();
  }

 private:
  void write_column(const Column& column) {
    const std::vector<Row> rows = rows_of(profile_, column);
    for (size_t first = 0; first < rows.size();) {
      size_t last = first;
      while (last < rows.size() && rows[last].thread == rows[first].thread) ++last;
      write_profile(column, std::span(rows).subspan(first, last - first));
      first = last;
    }
  }

  std::string title(const Column& column, profile::ThreadId id) const {
    if (!id.valid()) return std::string(column.name);
    const profile::Thread& thread = profile_.threads[id.index()];
    std::string who(profile_.text(thread.name));
    if (thread.process.valid()) {
      const auto process = profile_.text(profile_.processes[thread.process.index()].name);
      if (process != who) who = who.empty() ? std::string(process) : fmt::format("{} {}", process, who);
    }
    return fmt::format("{} (tid {}): {}", who, thread.tid, column.name);
  }

  void write_profile(const Column& column, std::span<const Row> rows) {
    json_.line_break();
    json_.begin_object();
    json_.text("type", "sampled");
    json_.text("name", title(column, rows[0].thread));
    json_.text("unit", speedscope_unit_of(column.unit));
    write_ours(column, rows[0].thread);
    const bool is_timed = column.unit == "nanoseconds" && rows[0].time_ns != Row::kNoTime;
    const uint64_t start = is_timed ? rows[0].time_ns : 0;
    json_.unsigned_number("startValue", start);
    json_.begin_array("samples");
    weights_.clear();
    uint64_t now = start;
    for (const Row& row : rows) {
      if (is_timed && row.time_ns != Row::kNoTime && row.time_ns > now) write_gap(row.time_ns, now);
      write_stack(row);
      weights_.push_back(row.weight);
      now += static_cast<uint64_t>(std::max<int64_t>(row.weight, 0));
    }
    json_.end_array();
    write_weights();
    if (is_timed)
      json_.unsigned_number("endValue", now);
    else
      json_.number("endValue", sum_of_weights());
    json_.end_object();
  }

  int64_t sum_of_weights() const {
    int64_t sum = 0;
    for (int64_t weight : weights_) sum = add_clamped(sum, weight);
    return sum;
  }

  void write_gap(uint64_t until, uint64_t& now) {
    json_.begin_array();
    json_.end_array();
    weights_.push_back(static_cast<int64_t>(until - now));
    now = until;
  }

  void write_stack(const Row& row) {
    json_.begin_array();
    for (const analyze::Frame& frame : walker_.frames(row.site, row.end)) json_.number(frame_number(frame));
    json_.end_array();
  }

  void write_weights() {
    json_.array("weights", weights_, [&](int64_t weight) { json_.number(weight); });
  }

  void write_ours(const Column& column, profile::ThreadId id) {
    json_.begin_object("cprof");
    json_.text("metric", column.name);
    json_.text("unit", column.unit);
    if (id.valid()) {
      const profile::Thread& thread = profile_.threads[id.index()];
      json_.number("tid", thread.tid);
      json_.text("thread", profile_.text(thread.name));
      if (thread.process.valid()) {
        const profile::Process& process = profile_.processes[thread.process.index()];
        json_.number("pid", process.pid);
        json_.text("process", profile_.text(process.name));
      }
    }
    json_.end_object();
  }

  // Frames that look the same are one: by name, file and line.
  int64_t frame_number(const analyze::Frame& frame) {
    const auto key = std::tuple(frame.name, frame.file, frame.source_line);
    auto [it, is_new] = numbers_.try_emplace(key, static_cast<int64_t>(frames_.size()));
    if (is_new) frames_.push_back(frame);
    return it->second;
  }

  void write_frames() {
    json_.begin_array("frames");
    for (const analyze::Frame& frame : frames_) {
      json_.line_break();
      json_.begin_object();
      json_.text("name", frame.name);
      if (!frame.file.empty()) json_.text("file", frame.file);
      if (frame.source_line) json_.number("line", frame.source_line);
      json_.end_object();
    }
    json_.end_array();
  }

  const Profile& profile_;
  JsonWriter json_;
  analyze::FrameWalker walker_;
  std::map<std::tuple<std::string_view, std::string_view, uint32_t>, int64_t> numbers_;
  std::vector<analyze::Frame> frames_;
  std::vector<int64_t> weights_;
};

// All metrics, the default one first, unless one value is asked for.
Result<std::vector<Column>> columns_of(const Profile& profile, const WriteOptions& options) {
  std::vector<Column> columns;
  if (!options.metric.empty() || options.weight != Weight::kSamples) {
    const ValueChoice choice = TRY(choose_value(profile, options));
    const profile::Metric& metric = profile.metrics[choice.metric.index()];
    const bool is_wall = choice.kind == ValueChoice::Kind::kWall;
    columns.push_back({choice.metric, is_wall ? "wall" : profile.text(metric.name),
                       is_wall ? "nanoseconds" : profile.text(metric.unit), choice});
    return columns;
  }
  const profile::MetricId first = analyze::default_metric(profile);
  if (!first.valid()) return fail("this profile has no values");
  for (size_t i = 0; i < profile.metrics.size(); ++i) {
    const profile::Metric& metric = profile.metrics[i];
    const profile::MetricId id(i);
    columns.push_back({id, profile.text(metric.name), profile.text(metric.unit),
                       {ValueChoice::Kind::kWeight, id, 1}});
  }
  std::rotate(columns.begin(), columns.begin() + static_cast<ptrdiff_t>(first.index()),
              columns.begin() + static_cast<ptrdiff_t>(first.index()) + 1);
  return columns;
}

}  // namespace

Result<void> write_speedscope(const Profile& profile, OutputFile& out, const WriteOptions& options) {
  const std::vector<Column> columns = TRY(columns_of(profile, options));
  PackedOutput packed = TRY(PackedOutput::create(out, out.path().ends_with(".gz")));
  TRY(SpeedscopeWriter(profile, packed).write(columns));
  return packed.finish();
}

}  // namespace cprof::format
