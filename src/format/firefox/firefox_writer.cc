// Version 57 of the processed format: tables of each thread, texts of all. One metric goes out, as CPU time of the samples
// when it is one, else as their weights; what the format has no place for (the metric's name) stands in meta.cprof.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/weights.h"
#include "format/firefox/firefox.h"
#include "format/firefox/firefox_tables_writer.h"
#include "format/json/json_labels.h"
#include "format/values.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

using profile::Profile;

constexpr int64_t kVersion = 57;
constexpr int64_t kGeckoVersion = 29;
constexpr unsigned kFromNano = 6;  // nanoseconds in milliseconds
constexpr uint64_t kDefaultInterval = 1'000'000;

struct Row {
  uint64_t time_ns;
  profile::CallSiteId site;
  int64_t weight;
};

// What is written for one thread.
struct Lane {
  profile::ThreadId thread;  // invalid: of values without one
  std::vector<Row> rows;
  std::vector<size_t> slices, marks;  // rows of the profile
};

class FirefoxWriter {
 public:
  FirefoxWriter(const Profile& profile, const ValueChoice& choice, PackedOutput& out)
      : profile_(profile), choice_(choice), json_(out), walker_(profile), shared_(profile),
        metric_(profile.metrics[choice.metric.index()]) {
    is_wall_ = choice.kind == ValueChoice::Kind::kWall;
    unit_ = is_wall_ ? "nanoseconds" : profile.text(metric_.unit);
    is_untimed_ = !profile.timed() && !profile.aggregates.empty();
    is_cpu_ = metric_.is_time && !is_wall_ && !is_untimed_;
  }

  Result<void> write() {
    collect();
    json_.begin_object();
    write_meta();
    json_.begin_array("threads");
    for (const auto& [id, lane] : lanes_) write_thread(lane);
    json_.end_array();
    json_.line_break();
    write_counters();
    json_.key("libs");
    shared_.write_libs(json_);
    json_.begin_object("shared");
    json_.key("stringArray");
    shared_.write_texts(json_);
    json_.end_object();
    json_.end_object();
    json_.line_break();
    return json_.finish();
  }

 private:
  void milliseconds(uint64_t ns) { json_.decimal(static_cast<int64_t>(std::min<uint64_t>(ns, INT64_MAX)), kFromNano); }
  void milliseconds(std::string_view key, uint64_t ns) {
    json_.key(key);
    milliseconds(ns);
  }

  Lane& lane(profile::ThreadId thread) {
    Lane& found = lanes_[thread];
    found.thread = thread;
    return found;
  }

  // Of a slice or mark: its own thread, its track's, or any of the track's process.
  profile::ThreadId owner(profile::ThreadId thread, profile::TrackId track) const {
    if (thread.valid() || !track.valid()) return thread;
    const profile::Track& row = profile_.tracks[track.index()];
    if (row.thread.valid() || !row.process.valid()) return row.thread;
    const auto found = std::ranges::find(profile_.threads, row.process, &profile::Thread::process);
    return found == profile_.threads.end() ? profile::ThreadId()
                                           : profile::ThreadId(static_cast<size_t>(found - profile_.threads.begin()));
  }

  void collect() {
    uint64_t row = 0;
    const uint64_t interval = interval_ns();
    if (is_untimed_ || choice_.kind != ValueChoice::Kind::kWeight) {
      for_each_value(profile_, choice_, [&](const StackValue& v) {
        lane(v.thread).rows.push_back({row++ * interval, v.site, v.value});
      });
    } else {
      for (const profile::Sample& s : profile_.samples)
        if (s.metric == choice_.metric) lane(s.thread).rows.push_back({s.time_ns, s.site, s.weight});
      if (counts_off_cpu(profile_, choice_.metric))
        for (const profile::OffCpuInterval& off : profile_.off_cpu)
          lane(off.thread).rows.push_back({off.start_ns, off.site, profile::off_cpu_value(off)});
    }
    for (size_t i = 0; i < profile_.slices.size(); ++i)
      lane(owner(profile_.slices[i].thread, profile_.slices[i].track)).slices.push_back(i);
    for (size_t i = 0; i < profile_.marks.size(); ++i)
      lane(owner(profile_.marks[i].thread, profile_.marks[i].track)).marks.push_back(i);
  }

  uint64_t interval_ns() const {
    return profile_.run.sampling_interval_ns ? profile_.run.sampling_interval_ns : kDefaultInterval;
  }

  void write_meta() {
    json_.begin_object("meta");
    milliseconds("interval", interval_ns());
    milliseconds("startTime", profile_.run.start_realtime_ns);
    json_.number("processType", 0);
    json_.text("product", profile_.run.command.empty() ? profile::base_name(profile_.run.source) : std::string_view(profile_.run.command));
    json_.number("stackwalk", 1);
    json_.number("version", kGeckoVersion);
    json_.number("preprocessedProfileVersion", kVersion);
    json_.boolean("symbolicated", true);
    json_.text("importedFrom", "cprof@" CPROF_VERSION);
    json_.begin_object("sampleUnits");
    json_.text("time", "ms");
    json_.text("eventDelay", "ms");
    json_.text("threadCPUDelta", "ns");
    json_.end_object();
    write_categories();
    json_.begin_array("markerSchema");
    json_.end_array();
    json_.begin_object("cprof");
    json_.text("metric", is_wall_ ? "wall" : profile_.text(metric_.name));
    json_.text("unit", unit_);
    json_.boolean("untimed", is_untimed_);
    json_.end_object();
    json_.end_object();
    json_.line_break();
  }

  void write_categories() {
    json_.begin_array("categories");
    for (auto [name, color] : {std::pair("Other", "grey"), {"User", "yellow"}, {"Kernel", "orange"}, {"JIT", "blue"},
                               {"Idle", "transparent"}}) {
      json_.begin_object();
      json_.text("name", name);
      json_.text("color", color);
      json_.begin_array("subcategories");
      json_.text("Other");
      json_.end_array();
      json_.end_object();
    }
    json_.end_array();
  }

  void write_thread(const Lane& lane) {
    const profile::Thread* thread = lane.thread.valid() ? &profile_.threads[lane.thread.index()] : nullptr;
    const profile::Process* process =
        thread && thread->process.valid() ? &profile_.processes[thread->process.index()] : nullptr;
    json_.line_break();
    json_.begin_object();
    json_.text("processType", "default");
    milliseconds("processStartupTime", process ? process->start_ns : 0);
    write_end("processShutdownTime", process ? process->end_ns : 0);
    milliseconds("registerTime", thread ? thread->start_ns : 0);
    write_end("unregisterTime", thread ? thread->end_ns : 0);
    json_.begin_array("pausedRanges");
    json_.end_array();
    json_.text("name", thread ? profile_.text(thread->name) : profile::base_name(profile_.run.source));
    json_.text("processName", process ? profile_.text(process->name) : profile::base_name(profile_.run.source));
    json_.boolean("isMainThread", !thread || !process || thread->tid == process->pid);
    json_.boolean("showMarkersInTimeline", !lane.slices.empty() || !lane.marks.empty());
    json_.text("pid", std::to_string(process ? process->pid : 0));
    json_.number("tid", thread ? thread->tid : 0);
    FirefoxTablesWriter tables(profile_, shared_, walker_);
    write_samples(lane, tables);
    write_markers(lane);
    tables.write(json_);
    json_.end_object();
  }

  void write_end(std::string_view key, uint64_t ns) {
    if (ns)
      milliseconds(key, ns);
    else
      json_.null(key);
  }

  void write_samples(const Lane& lane, FirefoxTablesWriter& tables) {
    json_.begin_object("samples");
    json_.array("stack", lane.rows, [&](const Row& row) {
      const int64_t stack = tables.stack(row.site);
      if (stack < 0)
        json_.null();
      else
        json_.number(stack);
    });
    json_.array("time", lane.rows, [&](const Row& row) { milliseconds(row.time_ns); });
    if (is_cpu_) {
      json_.array("threadCPUDelta", lane.rows, [&](const Row& row) { json_.number(row.weight); });
      json_.null("weight");
      json_.text("weightType", "samples");
    } else {
      const bool is_time = unit_ == "nanoseconds";
      json_.array("weight", lane.rows, [&](const Row& row) { json_.decimal(row.weight, is_time ? kFromNano : 0); });
      json_.text("weightType", is_time ? "tracing-ms" : unit_ == "bytes" ? "bytes" : "samples");
    }
    json_.number("length", static_cast<int64_t>(lane.rows.size()));
    json_.end_object();
  }

  void write_markers(const Lane& lane) {
    std::vector<profile::Slice> rows;  // a mark has no duration and is no slice
    for (size_t i : lane.slices) rows.push_back(profile_.slices[i]);
    const size_t slices = rows.size();
    for (size_t i : lane.marks) {
      const profile::Mark& m = profile_.marks[i];
      rows.push_back({.name = m.name, .start_ns = m.time_ns, .labels = m.labels});
    }
    const auto is_slice = [&](const profile::Slice& row) { return static_cast<size_t>(&row - rows.data()) < slices; };
    json_.begin_object("markers");
    json_.array("name", rows, [&](const profile::Slice& row) { json_.number(shared_.text(profile_.text(row.name))); });
    json_.array("startTime", rows, [&](const profile::Slice& row) { milliseconds(row.start_ns); });
    json_.array("endTime", rows, [&](const profile::Slice& row) {
      if (is_slice(row) && !row.is_open)
        milliseconds(row.start_ns + row.duration_ns);
      else
        json_.null();
    });
    json_.array("phase", rows, [&](const profile::Slice& row) { json_.number(!is_slice(row) ? 0 : row.is_open ? 2 : 1); });
    json_.array("category", rows, [&](const profile::Slice&) { json_.number(0); });
    json_.array("data", rows, [&](const profile::Slice& row) { write_labels(json_, profile_, row.labels); });
    json_.number("length", static_cast<int64_t>(rows.size()));
    json_.end_object();
  }

  // Values as they grow: the viewer adds them up again.
  void write_counters() {
    std::map<profile::TrackId, std::vector<profile::CounterValue>> tracks;
    for (const profile::CounterValue& value : profile_.counters) tracks[value.track].push_back(value);
    json_.begin_array("counters");
    for (const auto& [id, values] : tracks) write_counter(profile_.tracks[id.index()], values);
    json_.end_array();
    json_.line_break();
  }

  void write_counter(const profile::Track& track, const std::vector<profile::CounterValue>& values) {
    const bool has_process = track.process.valid();
    json_.begin_object();
    json_.text("name", profile_.text(track.name));
    json_.text("category", profile_.text(track.unit) == "bytes" ? "Memory" : "Counter");
    json_.text("description", "");
    json_.text("pid", std::to_string(has_process ? profile_.processes[track.process.index()].pid : 0));
    json_.number("mainThreadIndex", 0);
    json_.begin_object("display");
    json_.text("graphType", "line-accumulated");
    json_.end_object();
    json_.begin_object("samples");
    json_.array("time", values, [&](const profile::CounterValue& v) { milliseconds(v.time_ns); });
    double before = 0;
    json_.array("count", values, [&](const profile::CounterValue& v) {
      json_.real(v.value - before);
      before = v.value;
    });
    json_.number("length", static_cast<int64_t>(values.size()));
    json_.end_object();
    json_.end_object();
  }

  const Profile& profile_;
  ValueChoice choice_;
  JsonWriter json_;
  analyze::FrameWalker walker_;
  FirefoxShared shared_;
  const profile::Metric& metric_;
  std::string_view unit_;
  bool is_wall_ = false, is_untimed_ = false, is_cpu_ = false;
  std::map<profile::ThreadId, Lane> lanes_;
};

// The default metric by weight, unless a value is asked for.
Result<ValueChoice> choose(const Profile& profile, const WriteOptions& options) {
  if (!options.metric.empty() || options.weight != Weight::kSamples) {
    ValueChoice choice = TRY(choose_value(profile, options));
    choice.divisor = 1;
    return choice;
  }
  const profile::MetricId metric = analyze::default_metric(profile);
  if (!metric.valid()) return fail("this profile has no values");
  return ValueChoice{ValueChoice::Kind::kWeight, metric, 1};
}

}  // namespace

Result<void> write_firefox(const Profile& profile, OutputFile& out, const WriteOptions& options) {
  const ValueChoice choice = TRY(choose(profile, options));
  if (profile.metrics.size() > 1 && options.losses)
    options.losses->add("firefox_other_metrics", Severity::kDataLoss,
                        "the Firefox Profiler shows one value of samples; --metric chooses another", profile.metrics.size() - 1);
  PackedOutput packed = TRY(PackedOutput::create(out, out.path().ends_with(".gz")));
  TRY(FirefoxWriter(profile, choice, packed).write());
  return packed.finish();
}

}  // namespace cprof::format
