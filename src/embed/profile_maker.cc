#include "embed/profile_maker.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <bit>
#include <unordered_map>

#include <fmt/format.h>

#include "embed/module_names.h"
#include "embed/scopes.h"
#include "profile/builder.h"
#include "timeline/slice_lanes.h"

namespace cprof::embed {
namespace {

using inproc::WalkEnd;
using profile::StackEnd;


StackEnd end_of(WalkEnd end) {
  switch (end) {
    case WalkEnd::kRoot: return StackEnd::kComplete;
    case WalkEnd::kMaxDepth: return StackEnd::kMaxDepth;
    case WalkEnd::kNoModule: return StackEnd::kNoMapping;
    case WalkEnd::kNoRule: return StackEnd::kNoUnwindInfo;
    case WalkEnd::kBadRule: return StackEnd::kBadUnwindInfo;
    case WalkEnd::kUnreadable: return StackEnd::kUnreadableMemory;
    case WalkEnd::kNoProgress: return StackEnd::kNoProgress;
  }
  return StackEnd::kBadUnwindInfo;
}

class Maker {
 public:
  Maker(const Recording& recording, const ModuleTracker& modules, const NameTable& names, const TickClock& clock,
        const SessionFacts& facts)
      : recording_(recording), modules_(modules), names_(names), clock_(clock), facts_(facts), symbols_(modules) {}

  profile::Profile make() {
    describe_run();
    process_ = builder_.add_process(getpid(), facts_.program, facts_.start_ns);
    for (const StoredThread& thread : recording_.threads()) add_thread(thread);
    add_samples();
    for (size_t row = 0; row < recording_.threads().size(); row++) add_records(row);
    add_losses();
    profile::Profile profile = builder_.take();
    timeline::nest_slices(profile);
    return profile;
  }

 private:
  void describe_run() {
    profile::RunInfo& run = builder_.profile().run;
    utsname system = {};
    uname(&system);
    run.tool = "libcprof " CPROF_VERSION;
    run.command = facts_.program;
    run.hostname = system.nodename;
    run.kernel_release = system.release;
    run.start_ns = std::max(facts_.start_ns, facts_.since_ns);
    run.end_ns = facts_.end_ns;
    run.start_realtime_ns = facts_.start_realtime_ns + (run.start_ns - facts_.start_ns);
    run.cpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
    run.collector_cpu_ns = facts_.cost.collector_cpu_ns;
    run.bytes_read = facts_.cost.ring_bytes;
    if (facts_.frequency_hz) run.sampling_interval_ns = 1'000'000'000 / facts_.frequency_hz;
    run.comments.push_back(fmt::format("libcprof: {}, {} Hz asked, {:.1f} Hz delivered", facts_.event, facts_.frequency_hz,
                                       facts_.delivered_hz));
    run.comments.push_back(fmt::format("libcprof: handler p50 {} ns, p99 {} ns; collector {:.3f} s CPU; {} unwind tables in {:.1f} ms",
                                       facts_.cost.handler_p50_ns, facts_.cost.handler_p99_ns,
                                       static_cast<double>(facts_.cost.collector_cpu_ns) / 1e9, facts_.cost.table_builds,
                                       static_cast<double>(facts_.cost.table_build_ns) / 1e6));
    if (!facts_.cause.empty()) run.comments.push_back("libcprof: " + facts_.cause);
  }

  void add_thread(const StoredThread& thread) {
    if (!thread.tid) return threads_.push_back({});
    const uint64_t start = std::max(clock_.to_ns(thread.start_ticks), facts_.start_ns);
    const profile::ThreadId id = builder_.add_thread(process_, thread.tid, thread.name, start);
    if (thread.end_ticks) builder_.profile().threads[id.index()].end_ns = std::max(start, clock_.to_ns(thread.end_ticks));
    threads_.push_back(id);
  }

  profile::LocationId location_of(const StoredFrame& frame) {
    profile::Location location{.address = frame.address, .file_address = frame.address, .is_return_address = !frame.is_exact};
    if (frame.file == StoredFrame::kNoFile) {
      location.kind = profile::FrameKind::kUnknown;
      return builder_.location(location);
    }
    const LoadedFile& file = *modules_.files()[frame.file];
    location.mapping = builder_.mapping({.path = builder_.intern(file.path),
                                         .build_id = builder_.intern(file.build_id),
                                         .start = file.start,
                                         .end = file.end,
                                         .file_offset = file.file_offset,
                                         .load_bias = file.bias});
    location.address = frame.address + file.bias;
    const ModuleNames::Name* name = symbols_.find(frame.file, frame.address - !frame.is_exact, builder_.profile().diagnostics);
    if (name) location.function_start = name->start;
    const profile::LocationId id = builder_.location(location);
    if (name && !builder_.profile().locations[id.index()].line_count) {
      const profile::Line line{.function = builder_.function({.name = builder_.intern(name->text),
                                                              .system_name = builder_.intern(name->system)})};
      builder_.set_lines(id, {&line, 1});
    }
    if (!name) unnamed_++;
    return id;
  }

  profile::CallSiteId site_of(uint32_t stack) {
    if (sites_.size() <= stack) sites_.resize(recording_.stacks().size());
    if (sites_[stack].valid()) return sites_[stack];
    root_first_.clear();
    const auto frames = recording_.frames_of(stack);
    for (size_t n = frames.size(); n-- > 0;) root_first_.push_back(location_of(frames[n]));
    return sites_[stack] = builder_.stack(root_first_);
  }

  void add_samples() {
    if (!facts_.frequency_hz) return;
    const profile::MetricId metric =
        builder_.add_metric(facts_.is_wall ? "wall-clock" : "cpu-clock", "nanoseconds", 1'000'000'000 / facts_.frequency_hz, true);
    for (const StoredSample& sample : recording_.samples()) {
      const uint64_t time_ns = clock_.to_ns(sample.ticks);
      if (time_ns < facts_.since_ns) continue;
      profile::Sample row{.time_ns = time_ns,
                          .weight = sample.weight_ns / static_cast<int64_t>(sample.times),
                          .thread = threads_[sample.thread],
                          .site = site_of(sample.stack),
                          .metric = metric,
                          .end = end_of(sample.end)};
      // A timer that ticked on while its signal was pending: each period counts.
      for (uint32_t n = 0; n < sample.times; n++) builder_.add_sample(row);
    }
  }

  profile::TrackId track_of_fiber(uint32_t track) {
    const auto [it, is_new] = fibers_.try_emplace(track);
    if (is_new) {
      it->second = profile::TrackId{builder_.profile().tracks.size()};
      builder_.profile().tracks.push_back({.name = builder_.intern(names_.name(track)), .process = process_});
    }
    return it->second;
  }

  profile::TrackId counter_track(uint32_t name) {
    const auto [it, is_new] = counters_.try_emplace(name);
    if (is_new) {
      it->second = profile::TrackId{builder_.profile().tracks.size()};
      builder_.profile().tracks.push_back({.name = builder_.intern(names_.name(name)), .process = process_});
    }
    return it->second;
  }

  profile::LabelSetId jumped_label() {
    const profile::Label label{.key = builder_.intern("closed_by"), .text = builder_.intern("longjmp")};
    return builder_.label_set({&label, 1});
  }

  void add_record(profile::ThreadId thread, const cprof_record& record, bool is_open) {
    profile::Profile& profile = builder_.profile();
    const uint64_t start = std::max(clock_.to_ns(record.start), facts_.start_ns);
    const profile::TrackId track = track_of(record.word) ? track_of_fiber(track_of(record.word)) : profile::TrackId{};
    const StringId name = builder_.intern(names_.name(name_of(record.word)));
    if (kind_of(record.word) == CPROF_KIND_COUNTER_) {
      profile.counters.push_back({counter_track(name_of(record.word)), start, std::bit_cast<double>(record.end)});
    } else if (kind_of(record.word) == CPROF_KIND_MARK_) {
      profile.marks.push_back({.thread = thread, .name = name, .category = {}, .time_ns = start, .track = track, .labels = {}});
      profile.marks.back().category = builder_.intern("mark");
    } else {
      const uint64_t end = std::max(start, is_open ? facts_.end_ns : clock_.to_ns(record.end));
      profile.slices.push_back({.thread = track.valid() ? profile::ThreadId{} : thread,
                                .name = name,
                                .category = builder_.intern("scope"),
                                .start_ns = start,
                                .duration_ns = end - start,
                                .track = track,
                                .labels = record.word & kJumpedFlag ? jumped_label() : profile::LabelSetId{},
                                .is_open = is_open});
    }
  }

  void add_records(size_t row) {
    const StoredThread& thread = recording_.threads()[row];
    for (const cprof_record& record : thread.records)
      if (clock_.to_ns(time_of(record)) >= facts_.since_ns) add_record(threads_[row], record, false);
    for (const cprof_record& record : thread.open) add_record(threads_[row], record, true);
  }

  void lose(std::string_view name, std::string_view what, uint64_t count, Severity severity = Severity::kDataLoss) {
    if (count) builder_.profile().diagnostics.add(name, severity, what, count);
  }

  void add_losses() {
    const RecordingCounts& counts = recording_.counts();
    builder_.profile().diagnostics.merge(facts_.losses);
    lose("samples_lost", "samples that found no room in their thread's ring or in the buffer; buffer= is its size", counts.samples_lost);
    lose("scopes_lost", "scopes, marks and counter values that found no room; ring= and buffer= are the sizes", counts.lost);
    lose("cpu_ns_without_sample", "CPU nanoseconds of threads that ended before a sample could carry them", counts.unweighed_ns,
         Severity::kInfo);
    lose("names_refused", "names of scopes beyond the limit of 65,536; they are shown as one", names_.refused());
    lose("frames_without_name", "places in code that no symbol table names; cprof symbolize may know more", unnamed_, Severity::kInfo);
    for (size_t end = 1; end < std::size(counts.ends); end++) {
      if (!counts.ends[end]) continue;
      const StackEnd reason = end_of(static_cast<WalkEnd>(end));
      lose(fmt::format("stack_{}", profile::name_of(reason)), profile::description_of(reason), counts.ends[end], Severity::kNotice);
    }
    modules_.report(builder_.profile().diagnostics);
  }

  const Recording& recording_;
  const ModuleTracker& modules_;
  const NameTable& names_;
  const TickClock& clock_;
  const SessionFacts& facts_;
  ModuleNames symbols_;
  profile::ProfileBuilder builder_;
  profile::ProcessId process_{};
  std::vector<profile::ThreadId> threads_;
  std::vector<profile::CallSiteId> sites_;
  std::vector<profile::LocationId> root_first_;
  std::unordered_map<uint32_t, profile::TrackId> fibers_, counters_;
  uint64_t unnamed_ = 0;
};

}  // namespace

profile::Profile make_profile(const Recording& recording, const ModuleTracker& modules, const NameTable& names,
                              const TickClock& clock, const SessionFacts& facts) {
  return Maker(recording, modules, names, clock, facts).make();
}

}  // namespace cprof::embed
