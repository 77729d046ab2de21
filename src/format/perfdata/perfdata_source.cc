// How a file becomes a stream. The header (file form) or the first records (pipe form) describe the events; begin() is
// called when the first event is due, so that all descriptions before it count. Kernel records go through the sorter: a
// FINISHED_ROUND lets out what is older than all that the round before had seen; files without rounds are sorted within a
// window of bounded memory. Our own captures are in order already and pass through.
#include "format/perfdata/perfdata_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "format/perfdata/file_header.h"
#include "format/perfdata/layout.h"
#include "format/perfdata/session_record.h"

namespace cprof::format::perfdata {
namespace {

constexpr size_t kSortBytes = size_t{64} << 20;
constexpr size_t kRecordHeaderBytes = 8;

}  // namespace

PerfDataSource::PerfDataSource(Input input, const ReadOptions& options)
    : source_(std::move(input), options), options_(options), sorter_(kSortBytes), inflater_(options) {}

Result<void> PerfDataSource::run(event::EventSink& sink, Diagnostics& diagnostics) {
  diagnostics_ = &diagnostics;
  sink_ = &sink;
  auto played = play(sink);
  if (begun_) {
    auto finished = sink.finish(has_end_ ? end_ns_ : last_ns_);
    if (played) return finished;
  }
  return played;
}

Result<void> PerfDataSource::play(event::EventSink&) {
  std::byte magic[kPipeHeaderBytes];
  if (TRY(source_.read(magic)) != sizeof(magic)) return fail(source_.name() + ": too short for a perf.data");
  std::string_view text(reinterpret_cast<const char*>(magic), kMagic.size());
  swap_ = text == kMagicSwapped;
  if (text != kMagic && !swap_) return fail(source_.name() + ": not a perf.data of version 2");
  decoder_ = std::make_unique<event::RecordDecoder>(swap_);
  ByteReader size(std::span<const std::byte>(magic).subspan(8), swap_);
  uint64_t end = UINT64_MAX;
  if (size.u64() != kPipeHeaderBytes) {
    FileHeader header = TRY(read_file_header(source_, swap_, info_, *diagnostics_));
    for (FileEvent& event : header.events) add_event(std::move(event));
    build_ids_ = std::move(header.build_ids);
    source_.seek(header.data.offset);
    end = header.data.offset + header.data.size;
    if (!header.finished)
      diagnostics_->add("perfdata_not_finished", Severity::kDataLoss,
                        "perf did not finish writing this file; what is there was read", 1, source_.name());
  }
  TRY(read_stream(end));
  if (events_.empty() && !own_capture_) return fail(source_.name() + ": describes no events");
  TRY(ensure_begun());
  return {};
}

Result<void> PerfDataSource::read_stream(uint64_t end) {
  RecordStream stream(source_, swap_, end);
  Result<void> handled;
  while (handled) {
    auto record = TRY(stream.next());
    if (!record) break;
    handled = handle(*record, &stream);
  }
  // What was sorted so far is whole: it goes out even when a later record stopped us.
  Result<void> rest = sorter_.deliver(UINT64_MAX, taker());
  note_end(stream);
  note_unknown();
  if (uint64_t late = sorter_.late())
    diagnostics_->add("records_late", Severity::kInfo, "records that came after later ones had been delivered", late);
  return handled ? rest : handled;
}

void PerfDataSource::note_unknown() {
  auto note = [&](std::string_view name, std::string_view what, uint64_t count, const std::string& example) {
    if (count) diagnostics_->add(name, Severity::kError, what, count, example);
  };
  std::string types;
  uint64_t skipped = 0;
  for (const auto& [type, count] : unknown_types_) {
    types += fmt::format("{}{}", types.empty() ? (unknown_types_.size() > 1 ? "types " : "type ") : ", ", type);
    skipped += count;
  }
  note("records_unknown", "records of types that this version does not know were skipped", skipped, types);
  note("samples_of_unknown_event", "samples whose event the file does not describe were left out", samples_of_no_event_, "");
  note("group_values_unknown", "values read with a group whose event the file does not describe were left out", groups_.unknown(), "");
}

void PerfDataSource::note_end(const RecordStream& stream) {
  if (stream.end() == StreamEnd::kCutRecord)
    diagnostics_->add("perfdata_cut", Severity::kDataLoss, "the file ends in the middle of a record; all whole records were read", 1,
                      fmt::format("{} at byte {}", source_.name(), stream.position()));
  if (stream.end() == StreamEnd::kBadSize)
    diagnostics_->add("perfdata_bad_record", Severity::kDataLoss, "a record's size makes no sense; the rest of the file was not read", 1,
                      fmt::format("{} at byte {}", source_.name(), stream.position()));
}

Result<void> PerfDataSource::handle(const RawRecord& record, RecordStream* stream) {
  if (record.type < kFirstUserRecord) return handle_event_record(record.bytes);
  if (record.type == event::kOwnRecord) return handle_own(record);
  return handle_perfs(record, stream);
}

Result<void> PerfDataSource::handle_own(const RawRecord& record) {
  ByteReader in(record.bytes.subspan(kRecordHeaderBytes), swap_);
  uint64_t tag = in.u64();
  if (event::is_event_tag(tag)) return handle_event_record(record.bytes);
  if (tag == event::kEndTag) {
    end_ns_ = in.u64();
    has_end_ = in.ok();
    return {};
  }
  if (tag != event::kSessionTag) return {};  // an event's name as perf of 2011 wrote it
  auto info = swap_ || begun_ ? std::nullopt : decode_session(in.bytes(in.remaining()));
  if (!info) return fail(source_.name() + ": its session record is damaged or of a later version of cprof");
  info_ = std::move(*info);
  own_capture_ = true;
  return {};
}

// A nested stream (inside a compressed record) has no bytes beside its records and no further compression.
Result<void> PerfDataSource::handle_perfs(const RawRecord& record, RecordStream* stream) {
  auto payload = record.bytes.subspan(kRecordHeaderBytes);
  ByteReader in(payload, swap_);
  switch (record.type) {
    case kHeaderAttr: add_attr(payload); return {};
    case kEventUpdate: rename_event(payload); return {};
    case kHeaderBuildId: build_ids_.add_table(record.bytes, swap_, own_capture_); return {};
    case kFinishedRound: return finish_round(record);
    case kHeaderFeature: {
      uint64_t feature = in.u64();
      if (in.ok() && !own_capture_ && feature < kFeatureBits)
        apply_feature(static_cast<uint32_t>(feature), payload.subspan(8), swap_, info_, events_);
      return {};
    }
    case kHeaderTracingData: return stream ? stream->skip((uint64_t{in.u32()} + 7) / 8 * 8) : Result<void>{};
    case kAuxtrace: return stream ? stream->skip(in.u64()) : Result<void>{};
    case kCompressed:
    case kCompressed2:
      if (stream) return handle_compressed(record);
      [[fallthrough]];
    default:
      if (record.type >= kFirstUnknownUserRecord || !stream)
        note_type(record.type);
      return {};
  }
}

Result<void> PerfDataSource::handle_compressed(const RawRecord& record) {
  auto payload = record.bytes.subspan(kRecordHeaderBytes);
  if (record.type == kCompressed2) {
    ByteReader in(payload, swap_);
    uint64_t size = in.u64();
    payload = in.bytes(size);
    if (!in.ok()) {
      diagnostics_->add("records_malformed", Severity::kDataLoss, "records that make no sense were skipped");
      return {};
    }
  }
  auto fed = inflater_.feed(payload, swap_, [this](std::span<const std::byte> bytes) -> Result<void> {
    ByteReader header(bytes, swap_);
    RawRecord nested{header.u32(), bytes};
    return handle(nested, nullptr);
  });
  if (!fed) return std::unexpected(in_context(source_.name(), fed.error()));
  return {};
}

void PerfDataSource::add_attr(std::span<const std::byte> payload) {
  ByteReader in(payload, swap_);
  in.skip(4);
  uint32_t attr_bytes = in.u32();
  // The first attrs of 2009 had no size.
  if (attr_bytes == 0) attr_bytes = PERF_ATTR_SIZE_VER0;
  in.seek(0);
  auto attr = in.bytes(attr_bytes);
  if (!in.ok() || events_.size() >= kMostEvents) {
    diagnostics_->add("records_malformed", Severity::kDataLoss, "records that make no sense were skipped");
    return;
  }
  FileEvent event{.attr = parse_attr(attr, swap_), .ids = {}, .name = {}};
  while (in.remaining() >= 8) event.ids.push_back(in.u64());
  add_event(std::move(event));
}

// In our own captures the id says which metric it is; elsewhere each event that samples is a metric of its own.
void PerfDataSource::add_event(FileEvent event) {
  uint32_t metric = event::kNoMetric;
  if (own_capture_) {
    if (!event.ids.empty() && event.ids[0] != kSideBandId && metric_of_id(event.ids[0]) < info_.metrics.size())
      metric = metric_of_id(event.ids[0]);
  } else if (!is_side_band(event.attr)) {
    if (begun_) {
      diagnostics_->add("perfdata_late_event", Severity::kDataLoss, "events described only after the first sample were left out");
    } else {
      metric = static_cast<uint32_t>(info_.metrics.size());
      info_.metrics.push_back(metric_of(event));
    }
  }
  event::AttrLayout layout = event::layout_of(event.attr, metric);
  layout.has_stack_id = own_capture_ && (layout.sample_type & PERF_SAMPLE_ADDR);
  layout.repeats_stack = own_capture_ && metric != event::kNoMetric && !(layout.sample_type & PERF_SAMPLE_IP);
  decoder_->add_layout(layout, event.ids);
  for (uint64_t id : event.ids) groups_.add_event(id, metric);
  events_.push_back(std::move(event));
}

void PerfDataSource::rename_event(std::span<const std::byte> payload) {
  ByteReader in(payload, swap_);
  uint64_t type = in.u64(), id = in.u64();
  if (type != kUpdateName || own_capture_) return;
  std::string_view name = in.cstring();
  if (!in.ok()) return;
  for (FileEvent& event : events_)
    if (std::ranges::find(event.ids, id) != event.ids.end()) event.name = std::string(name);
}

Result<void> PerfDataSource::handle_event_record(std::span<const std::byte> bytes) {
  if (own_capture_) return deliver(bytes);
  sorter_.push_copy(decoder_->time_of_record(bytes), bytes);
  while (sorter_.over_limit()) TRY(sorter_.deliver_half(taker()));
  return {};
}

Result<void> PerfDataSource::finish_round(const RawRecord& record) {
  if (!own_capture_) {
    TRY(sorter_.deliver(sorter_.finish_round(), taker()));
    return begun_ ? sink_->on_round(last_ns_) : Result<void>{};
  }
  ByteReader in(record.bytes.subspan(kRecordHeaderBytes), swap_);
  uint64_t time = in.u64();
  TRY(ensure_begun());
  return sink_->on_round(in.ok() ? time : last_ns_);
}

// Names and features that came after an event's attr are known now.
Result<void> PerfDataSource::ensure_begun() {
  if (begun_) return {};
  begun_ = true;
  if (!own_capture_) {
    size_t metric = 0;
    bool arch_from_registers = false;
    for (const FileEvent& event : events_) {
      const perf_event_attr& attr = event.attr;
      info_.has_switches |= attr.context_switch;
      // Without a choice it is the scheduler's clock, which keeps close to CLOCK_MONOTONIC.
      info_.is_other_clock |= attr.use_clockid && attr.clockid != CLOCK_MONOTONIC;
      info_.has_kernel_stacks |= (attr.sample_type & PERF_SAMPLE_CALLCHAIN) && !attr.exclude_kernel && !attr.exclude_callchain_kernel;
      arch_from_registers |= attr.sample_regs_user == event::kAarch64Registers;
      if (!is_side_band(attr) && metric < info_.metrics.size()) info_.metrics[metric++] = metric_of(event);
    }
    if (arch_from_registers) info_.arch = event::Arch::kAarch64;
    if (!info_.has_kernel_stacks) info_.kernel_stacks_missing = "the file was recorded without kernel callchains";
    // Without a clock in the header the run begins with its first dated record.
    for (const event::RecordSorter::Item& item : sorter_.held()) {
      if (info_.start_ns == 0) info_.start_ns = item.time_ns;
    }
  }
  return sink_->begin(info_);
}

Result<void> PerfDataSource::deliver(std::span<const std::byte> bytes) {
  switch (decoder_->decode(bytes, event_)) {
    case event::DecodeOutcome::kEvent: break;
    case event::DecodeOutcome::kIgnored: return {};
    case event::DecodeOutcome::kUnknown: {
      ByteReader header(bytes, swap_);
      note_type(header.u32());
      return {};
    }
    case event::DecodeOutcome::kNoEvent: samples_of_no_event_++; return {};
    case event::DecodeOutcome::kMalformed:
      diagnostics_->add("records_malformed", Severity::kDataLoss, "records that make no sense were skipped");
      return {};
  }
  last_ns_ = std::max(last_ns_, event::time_of(event_));
  auto* mmap = std::get_if<event::Mmap>(&event_);
  if (mmap && mmap->build_id.empty()) mmap->build_id = build_ids_.find(mmap->path);
  TRY(ensure_begun());
  auto* sample = std::get_if<event::Sample>(&event_);
  if (!sample || decoder_->group_values().empty()) {
    if (const auto* exit = std::get_if<event::Exit>(&event_)) groups_.thread_ended(exit->task.tid);
    return sink_->on_event(event_);
  }
  auto others = groups_.expand(*sample, decoder_->group_values());
  TRY(sink_->on_event(event_));
  for (const event::Sample& other : others) TRY(sink_->on_event(other));
  return {};
}

}  // namespace cprof::format::perfdata
