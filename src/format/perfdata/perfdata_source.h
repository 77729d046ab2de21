// Plays a perf.data into a sink: reads its header records, sorts its events, decodes and delivers them.
#pragma once

#include <map>

#include "event/event.h"
#include "event/group_deltas.h"
#include "event/perf_record.h"
#include "event/record_sorter.h"
#include "format/format.h"
#include "format/perfdata/attributes.h"
#include "format/perfdata/build_ids.h"
#include "format/perfdata/byte_source.h"
#include "format/perfdata/inflate_records.h"
#include "format/perfdata/record_stream.h"

namespace cprof::format::perfdata {

class PerfDataSource final : public event::EventSource {
 public:
  PerfDataSource(Input input, const ReadOptions& options);
  Result<void> run(event::EventSink& sink, Diagnostics& diagnostics) override;

 private:
  Result<void> play(event::EventSink& sink);
  Result<void> read_stream(uint64_t end);
  Result<void> handle(const RawRecord& record, RecordStream* stream);
  Result<void> handle_own(const RawRecord& record);
  Result<void> handle_perfs(const RawRecord& record, RecordStream* stream);
  Result<void> handle_event_record(std::span<const std::byte> bytes);
  Result<void> handle_compressed(const RawRecord& record);
  Result<void> finish_round(const RawRecord& record);
  void add_attr(std::span<const std::byte> payload);
  void rename_event(std::span<const std::byte> payload);
  void add_event(FileEvent event);
  Result<void> ensure_begun();
  Result<void> deliver(std::span<const std::byte> bytes);
  auto taker() {
    return [this](const event::RecordSorter::Item& item) { return deliver(item.record); };
  }
  void note_end(const RecordStream& stream);
  void note_type(uint32_t type) { ++unknown_types_[type]; }
  void note_unknown();

  ByteSource source_;
  ReadOptions options_;
  event::EventSink* sink_ = nullptr;
  Diagnostics* diagnostics_ = nullptr;
  bool swap_ = false;
  bool begun_ = false;
  bool own_capture_ = false;  // our session record was seen: events are in order, ids are ours
  std::vector<FileEvent> events_;
  event::SessionInfo info_;
  BuildIds build_ids_;
  std::unique_ptr<event::RecordDecoder> decoder_;
  event::RecordSorter sorter_;
  event::GroupDeltas groups_;
  RecordInflater inflater_;
  event::Event event_;
  std::map<uint32_t, uint64_t> unknown_types_;
  uint64_t samples_of_no_event_ = 0;
  uint64_t last_ns_ = 0, end_ns_ = 0;
  bool has_end_ = false;
};

}  // namespace cprof::format::perfdata
