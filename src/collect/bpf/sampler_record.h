// Turns records of the BPF programs into events. Used by BpfCollector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collect/bpf/sampler_abi.h"
#include "event/event.h"

namespace cprof::collect {

// The header of a record; nothing when the bytes are no record.
const sampler_header* header_of(std::span<const std::byte> record);

// For a record of type SAMPLER_STACK: how new the mappings were that the walk went by.
uint64_t seen_ns_of_stack(std::span<const std::byte> record);

// The event of one record, which is valid until the next call. False: the record makes no sense, or is no event.
class SamplerRecordDecoder {
 public:
  bool decode(std::span<const std::byte> record, event::Event& event);

 private:
  bool decode_sample(std::span<const std::byte> record, event::Event& event);
  bool decode_stack(std::span<const std::byte> record, event::Event& event);
  bool decode_snapshot(std::span<const std::byte> record, event::Event& event);
  bool decode_switch(std::span<const std::byte> record, event::Event& event);

  std::vector<uint64_t> registers_;
};

}  // namespace cprof::collect
