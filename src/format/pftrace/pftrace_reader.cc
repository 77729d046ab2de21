// One pass over the packets. Each packet is looked at twice: first for what holds for all of it (its sequence, its time,
// whether the sequence's state is valid), then part by part, definitions before what uses them. What a sequence has told
// so far is its InternedState; times are converted as packets come.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "format/pftrace/interned_state.h"
#include "format/pftrace/packet_stream.h"
#include "format/pftrace/pftrace.h"
#include "format/pftrace/pftrace_fields.h"
#include "format/pftrace/proto_fields.h"
#include "format/pftrace/trace_clocks.h"
#include "format/pftrace/trace_metrics.h"
#include "format/pftrace/trace_tracks.h"
#include "format/pftrace/track_event.h"
#include "timeline/slice_lanes.h"

namespace cprof::format {
namespace {

using profile::LabelSetId;
using profile::Profile;
using profile::StackEnd;
using profile::ThreadId;
using protozero::data_view;
using protozero::pbf_wire_type;

constexpr size_t kFreeLabelBytes = size_t{8} << 20;

// Microseconds as nanoseconds, at the limit where they would leave 64 bits.
uint64_t from_us(int64_t us) {
  int64_t ns = 0;
  if (us < 0) return 0;
  return __builtin_mul_overflow(us, 1000, &ns) ? INT64_MAX : static_cast<uint64_t>(ns);
}

struct Sequence {
  explicit Sequence(TraceLocations& locations) : state(locations) {}

  InternedState state;
  bool is_valid = false;
  uint32_t clock = pft::ClockSnapshot::kBoottime;
  uint64_t track = 0;
  std::vector<uint64_t> extra_tracks, extra_double_tracks;
  std::optional<SampleMetric> perf, stack;
  std::vector<SampleMetric> followers;
  bool has_thread = false;  // told by a thread descriptor
  int32_t pid = 0, tid = 0;
  int64_t reference_us = 0;
};

// The parts of one packet.
struct Packet {
  std::optional<uint64_t> timestamp;
  uint32_t sequence = 0, flags = 0;
  std::optional<uint32_t> clock;
  bool is_after_loss = false;
  std::vector<std::pair<uint32_t, data_view>> parts;  // by field

  const data_view* part(uint32_t field) const {
    const auto found = std::ranges::find(parts, field, &std::pair<uint32_t, data_view>::first);
    return found == parts.end() ? nullptr : &found->second;
  }
};

void take_apart(data_view bytes, Packet& packet) {
  std::vector<std::pair<uint32_t, data_view>> parts = std::move(packet.parts);  // its memory serves again
  parts.clear();
  packet = {};
  packet.parts = std::move(parts);
  for (ProtoFields fields(bytes); fields.next();) {
    switch (fields.tag()) {
      case pft::Packet::kTimestamp: packet.timestamp = fields.get_uint64(); break;
      case pft::Packet::kSequenceId: packet.sequence = fields.get_uint32(); break;
      case pft::Packet::kSequenceFlags: packet.flags |= fields.get_uint32(); break;
      case pft::Packet::kIncrementalStateCleared:
        if (fields.get_bool()) packet.flags |= pft::Packet::kCleared;
        break;
      case pft::Packet::kPreviousPacketDropped: packet.is_after_loss = fields.get_bool(); break;
      case pft::Packet::kClockId: packet.clock = fields.get_uint32(); break;
      default:
        if (const uint32_t field = fields.tag(); fields.wire_type() == pbf_wire_type::length_delimited)
          packet.parts.emplace_back(field, fields.get_view());
        else fields.skip();
    }
  }
}

StackEnd end_of_error(uint32_t error) {
  constexpr std::array<StackEnd, 9> kEnds = {StackEnd::kNoUnwindInfo,     StackEnd::kComplete,     StackEnd::kUnreadableMemory,
                                             StackEnd::kNoUnwindInfo,     StackEnd::kBadUnwindInfo, StackEnd::kNoMapping,
                                             StackEnd::kMaxDepth,         StackEnd::kNoProgress,    StackEnd::kNoUnwindInfo};
  return error < kEnds.size() ? kEnds[error] : StackEnd::kNoUnwindInfo;
}

class PftraceReader {
 public:
  PftraceReader(InputStream input, const ReadOptions& options)
      : stream_(std::move(input), options), locations_(builder_), tracks_(builder_), metrics_(builder_) {
    builder_.profile().run.source = stream_.name();
    unnamed_ = builder_.intern("[unnamed]");
  }

  Result<Profile> read() {
    TRY(stream_.for_each([this](data_view bytes) { add_packet(bytes); }));
    return finish();
  }

 private:
  void add_packet(data_view bytes) {
    bytes_ += bytes.size();
    Packet& packet = packet_;
    take_apart(bytes, packet);
    Sequence& sequence = sequence_of(packet.sequence);
    if (packet.is_after_loss) sequence.is_valid = false;
    if (packet.flags & pft::Packet::kCleared) {
      sequence.state.clear();
      sequence.is_valid = true;
    }
    const bool needs_state = packet.flags & pft::Packet::kNeeds;
    for (const auto& [field, add] : kBefore)
      if (const data_view* part = packet.part(field)) (this->*add)(packet, sequence, *part);
    if (needs_state && !sequence.is_valid) {
      ++invalid_state_;
      return;
    }
    bool is_known = false;
    for (const auto& [field, add] : kParts) {
      const data_view* part = packet.part(field);
      if (!part) continue;
      is_known = true;
      (this->*add)(packet, sequence, *part);
    }
    for (const auto& part : packet.parts) has_other_data_ |= !is_known && part.first != pft::Packet::kInternedData;
  }

  using AddPart = void (PftraceReader::*)(const Packet&, Sequence&, data_view);
  static const std::array<std::pair<uint32_t, AddPart>, 3> kBefore;  // what the rest of the packet refers to
  static const std::array<std::pair<uint32_t, AddPart>, 8> kParts;

  Sequence& sequence_of(uint32_t id) {
    auto& sequence = sequences_[id];
    if (!sequence) sequence = std::make_unique<Sequence>(locations_);
    return *sequence;
  }

  void add_clocks(const Packet& packet, Sequence&, data_view bytes) {
    clocks_.add_snapshot(packet.sequence, ProtoFields(bytes));
  }

  void add_defaults(const Packet&, Sequence& sequence, data_view bytes) {
    for (ProtoFields fields(bytes); fields.next();) {
      switch (fields.tag()) {
        case pft::Defaults::kClockId: sequence.clock = fields.get_uint32(); break;
        case pft::Defaults::kTrackEvent: add_event_defaults(sequence, fields.get_message()); break;
        case pft::Defaults::kPerfSample: sequence.perf = metrics_.perf(fields.get_message()); break;
        case pft::Defaults::kStackSample: add_stack_defaults(sequence, fields.get_message()); break;
        default: fields.skip();
      }
    }
  }

  void add_event_defaults(Sequence& sequence, ProtoFields fields) {
    sequence.extra_tracks.clear();
    sequence.extra_double_tracks.clear();
    while (fields.next()) {
      switch (fields.tag()) {
        case pft::TrackEvent::kTrackUuid: sequence.track = fields.get_uint64(); break;
        case pft::TrackEvent::kExtraTracks: sequence.extra_tracks.push_back(fields.get_uint64()); break;
        case pft::TrackEvent::kExtraDoubleTracks: sequence.extra_double_tracks.push_back(fields.get_uint64()); break;
        default: fields.skip();
      }
    }
  }

  void add_stack_defaults(Sequence& sequence, ProtoFields defaults) {
    sequence.followers.clear();
    while (defaults.next()) {
      switch (defaults.tag()) {
        case pft::Defaults::kPrimary: sequence.stack = metrics_.stack(defaults.get_message()); break;
        case pft::Defaults::kFollowers: sequence.followers.push_back(metrics_.stack(defaults.get_message())); break;
        default: defaults.skip();
      }
    }
  }

  void add_interned(const Packet&, Sequence& sequence, data_view bytes) {
    if (sequence.is_valid) sequence.state.add(ProtoFields(bytes));
    else ++ignored_interned_;
  }

  // The packet's time in the profile's clock, which also becomes part of the trace's span.
  std::optional<uint64_t> time_of(const Packet& packet, const Sequence& sequence) {
    if (!packet.timestamp) {
      ++malformed_;
      return std::nullopt;
    }
    return in_span(clocks_.convert(packet.sequence, packet.clock.value_or(sequence.clock), *packet.timestamp));
  }

  std::optional<uint64_t> in_span(uint64_t time_ns) {
    if (time_ns > INT64_MAX) {
      ++malformed_;
      return std::nullopt;
    }
    first_ns_ = std::min(first_ns_, time_ns);
    last_ns_ = std::max(last_ns_, time_ns);
    return time_ns;
  }

  void add_descriptor(const Packet&, Sequence&, data_view bytes) { tracks_.describe(ProtoFields(bytes)); }

  void add_process_tree(const Packet&, Sequence&, data_view bytes) {
    using namespace pft::ProcessTree;
    std::vector<data_view> threads;
    for (ProtoFields tree(bytes); tree.next();) {
      if (tree.tag() == kThreads) threads.push_back(tree.get_view());
      else if (tree.tag() == kProcesses) add_process(tree.get_message());
      else tree.skip();
    }
    for (data_view thread : threads) {
      int32_t tid = 0, pid = 0;
      std::string_view name;
      for (ProtoFields t(thread); t.next();) {
        switch (t.tag()) {
          case kTid: tid = t.get_int32(); break;
          case kProcessId: pid = t.get_int32(); break;
          case kName: name = t.get_text(); break;
          default: t.skip();
        }
      }
      if (!name.empty()) tracks_.name_thread(pid, tid, name);
    }
  }

  void add_process(ProtoFields fields) {
    int32_t pid = 0;
    std::string_view program;
    while (fields.next()) {
      if (fields.tag() == pft::ProcessTree::kPid) pid = fields.get_int32();
      else if (fields.tag() == pft::ProcessTree::kCommandLine && program.empty()) program = fields.get_text();
      else fields.skip();
    }
    tracks_.name_process(pid, program.substr(program.rfind('/') + 1));
  }

  void add_process_descriptor(const Packet&, Sequence&, data_view bytes) {
    int32_t pid = 0;
    std::string_view name;
    for (ProtoFields fields(bytes); fields.next();) {
      if (fields.tag() == pft::TrackDescriptor::kProcessPid) pid = fields.get_int32();
      else if (fields.tag() == pft::TrackDescriptor::kProcessName) name = fields.get_text();
      else fields.skip();
    }
    tracks_.name_process(pid, name);
  }

  void add_thread_descriptor(const Packet&, Sequence& sequence, data_view bytes) {
    using namespace pft::TrackDescriptor;
    std::string_view name;
    sequence.has_thread = true;
    for (ProtoFields fields(bytes); fields.next();) {
      switch (fields.tag()) {
        case kThreadPid: sequence.pid = fields.get_int32(); break;
        case kThreadTid: sequence.tid = fields.get_int32(); break;
        case kThreadName: name = fields.get_text(); break;
        case kThreadReferenceUs: sequence.reference_us = fields.get_int64(); break;
        default: fields.skip();
      }
    }
    tracks_.name_thread(sequence.pid, sequence.tid, name);
  }

  LabelSetId label_set(const TrackEvent& event) {
    annotations_left_out_ += event.annotations_left_out;
    missing_names_ += event.missing_names;
    if (event.labels.empty()) return {};
    if (builder_.profile().labels.size() * sizeof(profile::Label) > kFreeLabelBytes + bytes_ / 2) {
      ++annotations_left_out_;
      return {};
    }
    return builder_.label_set(event.labels);
  }

  std::optional<uint64_t> event_time(const Packet& packet, Sequence& sequence, const TrackEvent& event) {
    if (packet.timestamp) return time_of(packet, sequence);
    if (!sequence.has_thread || (!event.delta_us && !event.absolute_us)) return time_of(packet, sequence);
    if (event.absolute_us) return in_span(from_us(*event.absolute_us));
    if (__builtin_add_overflow(sequence.reference_us, *event.delta_us, &sequence.reference_us)) ++malformed_;
    return in_span(from_us(sequence.reference_us));
  }

  void add_event(const Packet& packet, Sequence& sequence, data_view bytes) {
    const TrackEvent event = read_track_event(ProtoFields(bytes), sequence.state, builder_);
    const auto time = event_time(packet, sequence, event);
    if (!time) return;
    Edge edge{.time_ns = static_cast<int64_t>(*time), .name = event.name, .category = event.category, .labels = label_set(event)};
    if (edge.name == profile::kNoText) edge.name = unnamed_;
    const bool names_thread = event.pid || event.tid || (!event.track && sequence.track == 0 && sequence.has_thread);
    edge.lane = names_thread ? tracks_.lane_of_thread(event.pid.value_or(sequence.pid), event.tid.value_or(sequence.tid))
                             : tracks_.lane_of_uuid(event.track.value_or(sequence.track));
    add_extra_values(sequence, event, *time);
    if (event.type == 0) return add_legacy(event, edge);
    switch (event.type) {
      case pft::TrackEvent::kSliceBegin: break;
      case pft::TrackEvent::kSliceEnd:
        edge.kind = Edge::Kind::kEnd;
        edge.name = profile::kNoText;
        break;
      case pft::TrackEvent::kInstant: edge.kind = Edge::Kind::kMark; break;
      case pft::TrackEvent::kCounter:
        if (event.value) tracks_.add_counter(edge.lane, *time, *event.value);
        else ++malformed_;
        return;
      default: ++malformed_; return;
    }
    tracks_.add_edge(edge);
  }

  void add_extra_values(const Sequence& sequence, const TrackEvent& event, uint64_t time) {
    const auto add = [&](const std::vector<double>& values, const std::vector<uint64_t>& own, const std::vector<uint64_t>& usual) {
      const auto& uuids = own.empty() ? usual : own;
      for (size_t i = 0; i < values.size() && i < uuids.size(); ++i)
        tracks_.add_counter(tracks_.lane_of_uuid(uuids[i]), time, values[i]);
    };
    add(event.extra_values, event.extra_tracks, sequence.extra_tracks);
    add(event.extra_doubles, event.extra_double_tracks, sequence.extra_double_tracks);
  }

  // The phases of Chrome's JSON inside a packet; asynchronous ones and flows have no place here.
  void add_legacy(const TrackEvent& event, Edge edge) {
    switch (event.legacy_phase) {
      case 'B': break;
      case 'E':
        edge.kind = Edge::Kind::kEnd;
        edge.name = event.name;
        break;
      case 'i':
      case 'I':
      case 'R': edge.kind = Edge::Kind::kMark; break;
      case 'X': {
        const uint64_t duration = from_us(event.legacy_duration_us);
        in_span(static_cast<uint64_t>(edge.time_ns) + duration);
        return tracks_.add_slice(edge, std::min(duration, static_cast<uint64_t>(INT64_MAX - edge.time_ns)));
      }
      default: ++legacy_left_out_; return;
    }
    tracks_.add_edge(edge);
  }

  void add_sample(uint64_t time, ThreadId thread, const TraceStack& stack, const SampleMetric& metric, int64_t weight,
                  SampleExecution execution, StackEnd end = StackEnd::kComplete) {
    broken_stacks_ += stack.is_broken;
    if (stack.is_cut && !profile::is_incomplete(end)) end = StackEnd::kTruncatedSnapshot;
    builder_.add_sample({.time_ns = time,
                         .weight = weight,
                         .thread = thread,
                         .site = stack.site,
                         .cpu = execution.cpu,
                         .metric = metric.id,
                         .end = end,
                         .in_kernel = execution.in_kernel});
  }

  void add_perf_sample(const Packet& packet, Sequence& sequence, data_view bytes) {
    using namespace pft::PerfSample;
    SampleTask task;
    SampleExecution execution;
    uint64_t callstack = 0, lost = 0;
    bool is_skipped = false;
    StackEnd end = StackEnd::kComplete;
    for (ProtoFields fields(bytes); fields.next();) {
      switch (fields.tag()) {
        case kCpu: execution.cpu = fields.get_uint32(); break;
        case kPid: task.pid = static_cast<int32_t>(fields.get_uint32()); break;
        case kTid: task.tid = static_cast<int32_t>(fields.get_uint32()); break;
        case kCallstack: callstack = fields.get_uint64(); break;
        case kCpuMode: execution.in_kernel = fields.get_uint32() == kModeKernel; break;
        case kUnwindError: end = end_of_error(fields.get_uint32()); break;
        case kRecordsLost: lost = fields.get_uint64(); break;
        case kSkipped: is_skipped = true, fields.skip(); break;
        default: fields.skip();
      }
    }
    records_lost_ += lost;
    samples_skipped_ += is_skipped;
    if (lost || is_skipped) return;
    const auto time = time_of(packet, sequence);
    if (!time) return;
    if (!sequence.perf) sequence.perf = metrics_.perf(ProtoFields({}));
    const TraceStack stack = callstack ? sequence.state.stack(callstack) : TraceStack{};
    add_sample(*time, tracks_.thread(task.pid, task.tid), stack, *sequence.perf, sequence.perf->weight, execution, end);
  }

  void add_stack_sample(const Packet& packet, Sequence& sequence, data_view bytes) {
    using namespace pft::StackSample;
    const auto time = time_of(packet, sequence);
    if (!time) return;
    SampleTask task;
    SampleExecution execution;
    TraceStack stack;
    std::optional<SampleMetric> primary;
    int64_t weight = 1;
    std::vector<int64_t> followers;
    uint64_t iid = 0;
    for (ProtoFields fields(bytes); fields.next();) {
      switch (fields.tag()) {
        case kTask: task = InternedState::read_task(fields.get_message(), iid); break;
        case kTaskIid: task = sequence.state.task(fields.get_uint64()); break;
        case kExecution: execution = InternedState::read_execution(fields.get_message(), iid); break;
        case kExecutionIid: execution = sequence.state.execution(fields.get_uint64()); break;
        case kCallstack: stack = sequence.state.inline_stack(fields.get_message()); break;
        case kCallstackIid: stack = sequence.state.stack(fields.get_uint64()); break;
        case kPrimary: primary = metrics_.stack(fields.get_message()); break;
        case kPrimaryIid: primary = metrics_.named(sequence.state.counter(fields.get_uint64())); break;
        case kWeight: weight = fields.get_int64(); break;
        case kFollowerWeights:
          fields.for_each_uint64([&](uint64_t value) { followers.push_back(static_cast<int64_t>(value)); });
          break;
        default: fields.skip();
      }
    }
    if (!primary) primary = sequence.stack ? *sequence.stack : metrics_.named(profile::kNoText);
    const ThreadId thread = tracks_.thread(task.pid, task.tid);
    add_sample(*time, thread, stack, *primary, weight, execution);
    for (size_t i = 0; i < followers.size() && i < sequence.followers.size(); ++i)
      if (followers[i]) add_sample(*time, thread, stack, sequence.followers[i], followers[i], execution);
  }

  void add_streaming_profile(const Packet&, Sequence& sequence, data_view bytes) {
    std::vector<uint64_t> stacks;
    std::vector<int64_t> deltas;
    for (ProtoFields fields(bytes); fields.next();) {
      if (fields.tag() == pft::StreamingProfile::kCallstackIids)
        fields.for_each_uint64([&](uint64_t id) { stacks.push_back(id); });
      else if (fields.tag() == pft::StreamingProfile::kDeltasUs)
        fields.for_each_uint64([&](uint64_t value) { deltas.push_back(static_cast<int64_t>(value)); });
      else fields.skip();
    }
    const SampleMetric samples = metrics_.named(profile::kNoText);
    for (size_t i = 0; i < stacks.size(); ++i) {
      if (i < deltas.size() && __builtin_add_overflow(sequence.reference_us, deltas[i], &sequence.reference_us)) ++malformed_;
      const auto time = in_span(clocks_.convert(0, pft::ClockSnapshot::kMonotonic, from_us(sequence.reference_us)));
      if (time) add_sample(*time, tracks_.thread(sequence.pid, sequence.tid), sequence.state.stack(stacks[i]), samples, 1, {});
    }
  }

  Result<Profile> finish() {
    Profile& profile = builder_.profile();
    PairCounts counts;
    tracks_.finish(last_ns_, counts);
    drop_sampled_slices();
    open_unfinished();
    if (profile.slices.empty() && profile.samples.empty() && profile.marks.empty() && profile.counters.empty())
      return fail(fmt::format("{}: this trace has no slices, samples, marks or counters{}", stream_.name(),
                              has_other_data_ ? "; what else is in it (scheduling, heap profiles, ...) is not supported" : ""));
    profile.run.start_ns = first_ns_;
    profile.run.end_ns = last_ns_;
    profile.run.start_realtime_ns = clocks_.realtime_at(first_ns_);
    if (!profile.metrics.empty()) profile.run.default_metric = profile.metrics[0].name;
    std::ranges::stable_sort(profile.marks, {}, &profile::Mark::time_ns);
    note("pftrace_overlapping_slices", Severity::kNotice,
         "slices that overlap others of their track without nesting are shown on a further track", timeline::nest_slices(profile));
    timeline::add_slice_stacks(builder_);
    note_losses(counts);
    return builder_.take();
  }

  // Our own writer's slices that were made of the samples: views make them anew.
  void drop_sampled_slices() {
    Profile& profile = builder_.profile();
    if (profile.samples.empty()) return;
    const StringId sampled = builder_.intern(kSampledCategory);
    std::erase_if(profile.slices, [&](const profile::Slice& slice) { return slice.category == sampled; });
  }

  // Our own writer's slices without an end.
  void open_unfinished() {
    Profile& profile = builder_.profile();
    const StringId unfinished = builder_.intern(kUnfinishedNote);
    for (profile::Slice& slice : profile.slices) {
      const auto set = profile.labels_of(slice.labels);
      std::vector<profile::Label> labels(set.begin(), set.end());
      if (!std::erase_if(labels, [&](const profile::Label& label) { return label.key == unfinished; })) continue;
      slice.is_open = true;
      slice.labels = builder_.label_set(labels);
    }
  }

  void note(std::string_view name, Severity severity, std::string_view text, uint64_t count) {
    if (count) builder_.profile().diagnostics.add(name, severity, text, count);
  }

  void note_losses(const PairCounts& counts) {
    note("pftrace_malformed", Severity::kDataLoss, "events and samples without a usable time, type or value were left out", malformed_);
    note("pftrace_state_lost", Severity::kDataLoss,
         "packets of a sequence whose state is incomplete (its beginning or a packet before was lost) were left out", invalid_state_);
    note("pftrace_interned_ignored", Severity::kNotice, "interned data before a sequence's state begins are not used", ignored_interned_);
    note("pftrace_unnamed", Severity::kError, "names of events that are not interned: shown as [unnamed]", missing_names_);
    note("pftrace_broken_stacks", Severity::kDataLoss, "samples whose call stack is not interned count on [unknown]", broken_stacks_);
    note("pftrace_unknown_clocks", Severity::kError, "times of a clock that no snapshot tells are taken as they are", clocks_.unknown_times());
    note("pftrace_records_lost", Severity::kDataLoss, "records lost by the profiler that made the trace", records_lost_);
    note("pftrace_samples_skipped", Severity::kDataLoss, "samples skipped by the profiler that made the trace", samples_skipped_);
    note("pftrace_open_slices", Severity::kError, "slices without an end: shown until the end of the trace", counts.open);
    note("pftrace_unmatched_ends", Severity::kError, "ends that close no open slice were left out", counts.unmatched_ends);
    note("pftrace_annotations_left_out", Severity::kInfo, "debug annotations that are nested, many or take much room were left out",
         annotations_left_out_);
    note("pftrace_legacy_left_out", Severity::kInfo, "asynchronous events and flows in the old form were left out", legacy_left_out_);
  }

  profile::ProfileBuilder builder_;
  PacketStream stream_;
  TraceLocations locations_;
  TraceTracks tracks_;
  TraceClocks clocks_;
  std::map<uint32_t, std::unique_ptr<Sequence>> sequences_;
  TraceMetrics metrics_;
  Packet packet_;
  StringId unnamed_;
  bool has_other_data_ = false;
  uint64_t bytes_ = 0, first_ns_ = INT64_MAX, last_ns_ = 0;
  uint64_t malformed_ = 0, invalid_state_ = 0, ignored_interned_ = 0, missing_names_ = 0, broken_stacks_ = 0;
  uint64_t records_lost_ = 0, samples_skipped_ = 0, annotations_left_out_ = 0, legacy_left_out_ = 0;
};

const std::array<std::pair<uint32_t, PftraceReader::AddPart>, 3> PftraceReader::kBefore = {{
    {pft::Packet::kClockSnapshot, &PftraceReader::add_clocks},
    {pft::Packet::kDefaults, &PftraceReader::add_defaults},
    {pft::Packet::kInternedData, &PftraceReader::add_interned},
}};

const std::array<std::pair<uint32_t, PftraceReader::AddPart>, 8> PftraceReader::kParts = {{
    {pft::Packet::kTrackDescriptor, &PftraceReader::add_descriptor},
    {pft::Packet::kProcessTree, &PftraceReader::add_process_tree},
    {pft::Packet::kThreadDescriptor, &PftraceReader::add_thread_descriptor},
    {pft::Packet::kTrackEvent, &PftraceReader::add_event},
    {pft::Packet::kPerfSample, &PftraceReader::add_perf_sample},
    {pft::Packet::kStackSample, &PftraceReader::add_stack_sample},
    {pft::Packet::kStreamingProfile, &PftraceReader::add_streaming_profile},
    {pft::Packet::kProcessDescriptor, &PftraceReader::add_process_descriptor},
}};

}  // namespace

Result<Profile> read_pftrace(Input input, const ReadOptions& options) {
  auto stream = TRY(InputStream::open(std::move(input), options));
  return PftraceReader(std::move(stream), options).read();
}

}  // namespace cprof::format
