// --save-raw: the event stream as a perf.data in pipe form, which `perf report -i FILE` reads too. Events are written in
// the order they come, which is the order of time, so a replay gives the same stream. Called by the session, alone or
// beside the pipeline.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "event/event.h"
#include "event/perf_record.h"
#include "format/perfdata/stack_chains.h"

namespace cprof::format {

class RawWriter final : public event::EventSink {
 public:
  explicit RawWriter(OutputFile out) : out_(std::move(out)) {}

  Result<void> begin(const event::SessionInfo& info) override;
  Result<void> on_event(const event::Event& event) override;
  Result<void> on_round(uint64_t time_ns) override;
  Result<void> finish(uint64_t end_ns) override;  // commits the file

  uint64_t bytes_written() const { return out_.bytes_written(); }
  // Events that do not fit a record of 64 KiB and were left out.
  uint64_t dropped() const { return dropped_; }

 private:
  struct Variant {
    event::AttrLayout layout;
    uint64_t id;
  };

  Result<void> write_record(uint32_t type, std::span<const std::byte> payload, uint16_t misc = 0);
  Result<void> write_own(uint64_t tag, std::span<const std::byte> payload);
  Result<void> write_attr(const event::Metric& metric, const event::AttrLayout& layout, uint64_t id);
  Result<void> write_features();
  Result<uint64_t> id_for(const event::Sample& sample);
  Result<void> write_event(const event::Event& event, uint64_t id);
  Result<void> write_sample(const event::Sample& sample);
  Result<void> write_build_id(const event::Mmap& mmap);
  Result<void> write_stack_memory(const event::StackMemory& memory);

  OutputFile out_;
  event::SessionInfo info_;
  std::vector<Variant> variants_;
  perfdata::StackChains chains_;
  std::map<std::string, std::vector<std::byte>, std::less<>> build_ids_;  // by path, the last one written
  std::vector<std::byte> buffer_;
  uint64_t dropped_ = 0;
  bool round_open_ = false;
};

}  // namespace cprof::format
