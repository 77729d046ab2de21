// Events in this order: names, slices, waits, asynchronous tracks, marks, counters, samples; then the stacks of waits and
// samples. Each thread's events carry its real pid and tid. Slices that were made of samples are marked ("sampled"), so
// that our reader, which makes them anew from the samples, does not count them twice.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analyze/frames.h"
#include "analyze/weights.h"
#include "format/chrome/chrome.h"
#include "format/chrome/own_data.h"
#include "format/gzip.h"
#include "format/json/json_labels.h"
#include "format/json/json_writer.h"
#include "format/timeline_check.h"
#include "format/values.h"
#include "timeline/slice_lanes.h"
#include "timeline/timeline.h"

namespace cprof::format {
namespace {

using profile::CallSiteId;
using profile::LabelSetId;
using profile::LocationId;
using profile::OffCpuInterval;
using profile::ProcessId;
using profile::Profile;
using profile::Slice;
using profile::ThreadId;
using profile::Track;
using timeline::LaneSlice;

struct Task {
  int32_t pid = 0, tid = 0;
};

// Ids of frames: one for each line of the location of each call site in use. An id is 1 + its number.
class FrameIds {
 public:
  explicit FrameIds(const Profile& profile) : profile_(profile), first_(profile.sites.size()) {
    std::vector<bool> used(profile.sites.size());
    auto mark = [&](CallSiteId site) {
      if (site.valid()) used[site.index()] = true;
    };
    for (const profile::Sample& sample : profile.samples) mark(sample.site);
    for (const OffCpuInterval& wait : profile.off_cpu) mark(wait.site);
    for (size_t i = used.size(); i-- > 0;)
      if (used[i]) mark(profile.sites[i].parent);
    uint64_t next = 1;
    for (size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) continue;
      first_[i] = next;
      next += lines_of(i);
    }
  }

  uint16_t lines_of(size_t site) const {
    return std::max<uint16_t>(1, profile_.locations[profile_.sites[site].location.index()].line_count);
  }
  uint64_t first_of(size_t site) const { return first_[site]; }  // 0: not in use
  uint64_t last_of(CallSiteId site) const { return site.valid() ? first_[site.index()] + lines_of(site.index()) - 1 : 0; }

 private:
  const Profile& profile_;
  std::vector<uint64_t> first_;
};

std::string_view kind_name(profile::FrameKind kind) {
  switch (kind) {
    case profile::FrameKind::kKernel: return "kernel";
    case profile::FrameKind::kJit: return "jit";
    case profile::FrameKind::kInterpreted: return "interpreted";
    default: return {};
  }
}

class ChromeWriter {
 public:
  ChromeWriter(const Profile& profile, PackedOutput& out, Diagnostics* losses)
      : profile_(profile), json_(out), walker_(profile), ids_(profile), losses_(losses) {}

  Result<void> write() {
    json_.begin_object();
    json_.text("displayTimeUnit", "ns");
    write_run();
    json_.begin_array("traceEvents");
    write_names();
    write_slices();
    write_stack_slices();
    write_waits();
    write_marks();
    write_counters();
    write_samples();
    json_.line_break();
    json_.end_array();
    write_frames();
    json_.end_object();
    json_.line_break();
    count_losses();
    return json_.finish();
  }

 private:
  void member_if(std::string_view key, std::string_view text) {
    if (!text.empty()) json_.text(key, text);
  }
  void member_if(std::string_view key, uint64_t number) {
    if (number) json_.unsigned_number(key, number);
  }

  void write_run() {
    const profile::RunInfo& run = profile_.run;
    json_.begin_object("otherData");
    json_.text("tool", run.tool.starts_with(chrome::kOwnTool) ? std::string_view(run.tool) : chrome::kOwnTool);
    member_if("command", run.command);
    member_if("hostname", run.hostname);
    member_if("kernel_release", run.kernel_release);
    member_if("start_ns", run.start_ns);
    member_if("end_ns", run.end_ns);
    member_if("start_realtime_ns", run.start_realtime_ns);
    member_if("sampling_interval_ns", run.sampling_interval_ns);
    member_if("has_switches", run.has_switches);
    member_if("has_off_cpu", run.has_off_cpu);
    member_if("default_metric", profile_.text(run.default_metric));
    write_metrics();
    json_.end_object();
  }

  void write_metrics() {
    json_.begin_object("metrics");
    for (const profile::Metric& metric : profile_.metrics) {
      json_.begin_object(profile_.text(metric.name));
      json_.text("unit", profile_.text(metric.unit));
      member_if("period", metric.period);
      member_if("is_time", metric.is_time);
      json_.end_object();
    }
    json_.end_object();
    json_.begin_object("units");
    std::set<std::string_view> told;
    for (const Track& track : profile_.tracks) {
      const std::string_view name = profile_.text(track.name);
      if (track.unit != profile::kNoText && told.insert(name).second) json_.text(name, profile_.text(track.unit));
    }
    json_.end_object();
  }

  Task task_of(ProcessId id) const {
    if (!id.valid()) return {};
    const int32_t pid = profile_.processes[id.index()].pid;
    return {pid, pid};
  }
  Task task_of(ThreadId id) const {
    const profile::Thread& thread = profile_.threads[id.index()];
    return {thread.process.valid() ? profile_.processes[thread.process.index()].pid : thread.tid, thread.tid};
  }
  Task task_of(const Track& track) const { return track.thread.valid() ? task_of(track.thread) : task_of(track.process); }

  // What every event has; its last members and its end follow.
  void begin_event(std::string_view phase, std::string_view name, std::string_view category, Task task) {
    json_.line_break();
    json_.begin_object();
    json_.text("ph", phase);
    json_.text("name", name);
    if (!category.empty()) json_.text("cat", category);
    json_.number("pid", task.pid);
    json_.number("tid", task.tid);
  }

  void time(std::string_view key, uint64_t time_ns) {
    json_.key(key);
    json_.fixed(static_cast<int64_t>(std::min<uint64_t>(time_ns, INT64_MAX)), 3);
  }

  // Times that JSON readers take for signed numbers of 64 bits.
  bool is_too_late(uint64_t start_ns, uint64_t duration_ns = 0) {
    const bool is_late = start_ns > INT64_MAX || duration_ns > INT64_MAX - start_ns;
    times_too_late_ += is_late;
    return is_late;
  }

  void write_names() {
    for (size_t i = 0; i < profile_.processes.size(); ++i)
      write_name("process_name", task_of(ProcessId(i)), profile_.text(profile_.processes[i].name));
    for (size_t i = 0; i < profile_.threads.size(); ++i)
      write_name("thread_name", task_of(ThreadId(i)), profile_.text(profile_.threads[i].name));
  }

  void write_name(std::string_view what, Task task, std::string_view name) {
    if (name.empty()) return;
    begin_event("M", what, {}, task);
    json_.begin_object("args");
    json_.text("name", name);
    json_.end_object();
    json_.end_object();
  }

  void write_arguments(LabelSetId labels) {
    if (!labels.valid()) return;
    json_.key("args");
    write_labels(json_, profile_, labels);
  }

  // Slices of threads, and of tracks that belong to a thread, are complete events; tracks of a process are asynchronous.
  void write_slices() {
    const std::vector<LaneSlice> lanes = timeline::slice_lanes(profile_);
    for (size_t i = 0; i < lanes.size();) {
      const Slice& slice = profile_.slices[lanes[i].slice];
      if (!slice.track.valid() || profile_.tracks[slice.track.index()].thread.valid()) {
        write_slice(slice);
        ++i;
        continue;
      }
      size_t end = i;
      while (end < lanes.size() && profile_.slices[lanes[end].slice].track == slice.track) ++end;
      write_track(std::span(lanes).subspan(i, end - i), profile_.tracks[slice.track.index()]);
      i = end;
    }
  }

  void write_slice(const Slice& slice) {
    if (is_too_late(slice.start_ns, slice.duration_ns)) return;
    const Task task = slice.track.valid() ? task_of(profile_.tracks[slice.track.index()]) : task_of(slice.thread);
    const std::string_view category = profile_.text(slice.category);
    begin_event(slice.is_open ? "B" : "X", profile_.text(slice.name), category.empty() ? chrome::kSliceCategory : category, task);
    time("ts", slice.start_ns);
    if (!slice.is_open) time("dur", slice.duration_ns);
    write_arguments(slice.labels);
    json_.end_object();
  }

  struct Async {
    std::string_view scope, category;
    uint64_t id;
    Task task;
  };

  void write_track(std::span<const LaneSlice> lanes, const Track& track) {
    std::vector<LaneSlice> sorted(lanes.begin(), lanes.end());  // lane by lane
    std::ranges::stable_sort(sorted, {}, &LaneSlice::lane);
    std::vector<const Slice*> open;
    Async async{profile_.text(track.name), {}, 0, task_of(track)};
    auto close = [&](uint32_t depth) {
      for (; open.size() > depth; open.pop_back())
        if (!open.back()->is_open) write_async("e", *open.back(), open.back()->start_ns + open.back()->duration_ns, async);
    };
    for (const LaneSlice& lane : sorted) {
      const Slice& slice = profile_.slices[lane.slice];
      if (is_too_late(slice.start_ns, slice.duration_ns)) continue;
      close(lane.depth);
      if (lane.depth == 0) async = {async.scope, profile_.text(slice.category), ++async_ids_, async.task};
      write_async("b", slice, slice.start_ns, async);
      open.push_back(&slice);
    }
    close(0);
  }

  void write_async(std::string_view phase, const Slice& slice, uint64_t time_ns, const Async& async) {
    begin_event(phase, profile_.text(slice.name), async.category.empty() ? chrome::kAsyncCategory : async.category, async.task);
    time("ts", time_ns);
    json_.text("id", fmt::format("0x{:x}", async.id));
    member_if("scope", async.scope);
    if (phase == "b") write_arguments(slice.labels);
    json_.end_object();
  }

  void write_stack_slices() {
    if (!profile_.timed()) return;
    timeline::for_each_slice(profile_, timeline_options(profile_, analyze::default_metric(profile_)),
                             [&](const timeline::FrameSlice& slice) {
                               if (is_too_late(slice.end_ns)) return;
                               const std::string_view name = walker_.frame(slice.location, slice.line).name;
                               begin_event("X", name, chrome::kSliceCategory, task_of(slice.thread));
                               time("ts", slice.start_ns);
                               time("dur", slice.end_ns - slice.start_ns);
                               json_.boolean("sampled", true);
                               json_.end_object();
                             });
  }

  void write_waits() {
    for (const OffCpuInterval& wait : profile_.off_cpu) {
      if (is_too_late(wait.end_ns)) continue;
      begin_event("X", name_of(wait.wait_class), "offcpu", task_of(wait.thread));
      time("ts", wait.start_ns);
      time("dur", wait.duration_ns());
      if (wait.site.valid()) json_.unsigned_number("sf", ids_.last_of(wait.site));
      json_.begin_object("args");
      json_.unsigned_number("wait", uint64_t{1});
      if (wait.woken_ns) json_.unsigned_number("runnable_ns", wait.end_ns - wait.woken_ns);
      if (wait.waker.valid()) json_.unsigned_number("waker", static_cast<uint64_t>(std::max(0, profile_.threads[wait.waker.index()].tid)));
      member_if("cpu", wait.cpu);
      member_if("borrowed", wait.is_borrowed);
      member_if("guessed", wait.is_guessed);
      member_if("open", wait.is_open);
      member_if("uninterruptible", wait.is_uninterruptible);
      if (wait.end != profile::StackEnd::kNotUnwound) json_.text("end", name_of(wait.end));
      json_.end_object();
      json_.end_object();
    }
  }

  void write_marks() {
    for (const profile::Mark& mark : profile_.marks) {
      if (is_too_late(mark.time_ns)) continue;
      const Track* track = mark.track.valid() ? &profile_.tracks[mark.track.index()] : nullptr;
      const bool is_of_thread = mark.thread.valid() || track->thread.valid();
      const Task task = mark.thread.valid() ? task_of(mark.thread) : task_of(*track);
      begin_event("i", profile_.text(mark.name), profile_.text(mark.category), task);
      time("ts", mark.time_ns);
      json_.text("s", is_of_thread ? "t" : track->process.valid() ? "p" : "g");
      write_arguments(mark.labels);
      json_.end_object();
    }
  }

  // Counters of one name and process are told apart by an id.
  void write_counters() {
    std::set<std::pair<int32_t, StringId>> names;
    std::vector<uint64_t> ids(profile_.tracks.size());
    for (size_t i = 0; i < profile_.tracks.size(); ++i)
      if (!names.emplace(task_of(profile_.tracks[i]).pid, profile_.tracks[i].name).second) ids[i] = i + 1;
    for (const profile::CounterValue& value : profile_.counters) {
      if (is_too_late(value.time_ns)) continue;
      const Track& track = profile_.tracks[value.track.index()];
      begin_event("C", profile_.text(track.name), {}, task_of(track));
      time("ts", value.time_ns);
      if (const uint64_t id = ids[value.track.index()]) json_.text("id", fmt::format("0x{:x}", id));
      json_.begin_object("args");
      json_.key("value");
      json_.real(value.value);
      json_.end_object();
      json_.end_object();
    }
  }

  void write_samples() {
    for (const profile::Sample& sample : profile_.samples) {
      if (is_too_late(sample.time_ns)) continue;
      const profile::Metric& metric = profile_.metrics[sample.metric.index()];
      begin_event("i", profile_.text(metric.name), "sample", task_of(sample.thread));
      time("ts", sample.time_ns);
      json_.text("s", "t");
      if (sample.site.valid()) json_.unsigned_number("sf", ids_.last_of(sample.site));
      json_.begin_object("args");
      json_.unsigned_number("cpu", uint64_t{sample.cpu});
      const auto usual = static_cast<int64_t>(metric.period && metric.period <= INT64_MAX ? metric.period : 1);
      if (sample.weight != usual) {
        json_.number("weight", sample.weight);
      }
      if (sample.end != profile::StackEnd::kComplete) json_.text("end", name_of(sample.end));
      json_.end_object();
      json_.end_object();
    }
  }

  void write_frames() {
    json_.begin_object("stackFrames");
    for (size_t site = 0; site < profile_.sites.size(); ++site) {
      if (!ids_.first_of(site)) continue;
      uint64_t parent = ids_.last_of(profile_.sites[site].parent);
      const LocationId location = profile_.sites[site].location;
      // Lines stand innermost first; the tree goes from the caller to what it inlined.
      for (uint16_t line = ids_.lines_of(site); line-- > 0;) {
        const uint64_t id = ids_.first_of(site) + (ids_.lines_of(site) - 1u - line);
        write_frame(id, parent, walker_.frame(location, line), location);
        parent = id;
      }
    }
    json_.line_break();
    json_.end_object();
  }

  void write_frame(uint64_t id, uint64_t parent, const analyze::Frame& frame, LocationId location) {
    const profile::MappingId mapping = profile_.locations[location.index()].mapping;
    json_.line_break();
    json_.begin_object(fmt::format("{}", id));
    json_.text("name", frame.name);
    if (mapping.valid()) member_if("category", profile_.text(profile_.mappings[mapping.index()].path));
    if (parent) json_.text("parent", fmt::format("{}", parent));
    member_if("kind", kind_name(frame.kind));
    member_if("file", frame.file);
    member_if("line", uint64_t{frame.source_line});
    json_.end_object();
  }

  void count_losses() {
    if (losses_ && times_too_late_)
      losses_->add("chrome_times_too_late", Severity::kDataLoss,
                   "samples and slices at times of 2^63 ns or later were not written", times_too_late_);
  }

  const Profile& profile_;
  JsonWriter json_;
  analyze::FrameWalker walker_;
  FrameIds ids_;
  Diagnostics* losses_;
  uint64_t async_ids_ = 0, times_too_late_ = 0;
};

}  // namespace

Result<void> write_chrome(const Profile& profile, OutputFile& out, const WriteOptions& options) {
  if (!is_timeline(profile))
    return fail(fmt::format("{}: this profile has no times, and a Chrome trace is a timeline; write .pb.gz or .folded",
                            out.path()));
  PackedOutput packed = TRY(PackedOutput::create(out, out.path().ends_with(".gz")));
  TRY(ChromeWriter(profile, packed, options.losses).write());
  return packed.finish();
}

}  // namespace cprof::format
