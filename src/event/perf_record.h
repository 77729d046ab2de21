// The kernel's perf record ABI, both ways: bytes of one record to an Event, and an Event to bytes. The live collector
// decodes what the rings hold, the perf.data reader what a file holds, the raw writer encodes. Facts are from
// include/uapi/linux/perf_event.h. Never reads outside the given bytes, never allocates per record, never fails hard:
// what cannot be decoded comes back as an outcome that the caller counts.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/byte_reader.h"
#include "base/number_map.h"
#include "base/result.h"
#include "event/event.h"

namespace cprof::event {

// Records of our own have the type of perf's HEADER_EVENT_TYPE, which was given up in 2012 and is the one that every perf
// passes over without a word (an unknown type ends perf 6.1). A tag follows the header: "cprof" and the kind.
inline constexpr uint32_t kOwnRecord = 65;
constexpr uint64_t own_tag(uint64_t kind) { return kind << 48 | 0x666f727063; }
inline constexpr uint64_t kSessionTag = own_tag(1);      // then format/perfdata/session_record.h
inline constexpr uint64_t kStackMemoryTag = own_tag(2);  // then u64 address, u64 size, bytes, pad to 8, trailer
inline constexpr uint64_t kEndTag = own_tag(3);          // then u64 end_ns
inline constexpr uint64_t kStackDefTag = own_tag(4);     // then u64 id, u64 end, u64 kernel count, u64 user count, words, trailer
inline constexpr uint64_t kCountTag = own_tag(5);        // then u64 metric, samples, weight, stack id, in kernel, trailer
inline constexpr uint64_t kWakeupTag = own_tag(6);       // then the waker's pid and tid, trailer
inline constexpr uint64_t kCgroupTag = own_tag(7);       // then the path with its 0, pad to 8, trailer
inline constexpr uint64_t kUninterruptible = 1;          // in the word that may follow a switch-out's stack id
bool is_event_tag(uint64_t tag);                         // whether the decoder makes an event of such a record

inline constexpr size_t kMaxRecordBytes = 65528;            // header.size is 16 bits and a multiple of 8
inline constexpr uint32_t kMaxStackBytes = 65528;           // sample_stack_user: 16 bits and a multiple of 8
inline constexpr uint32_t kNoMetric = 0xffffffff;           // a side band event: its samples are not wanted

// Every general-purpose register, as perf numbers them.
inline constexpr uint64_t kX86_64Registers = 0xff03ff;      // AX..IP, FLAGS, R8..R15: 18
inline constexpr uint64_t kAarch64Registers = 0x1ffffffff;  // X0..X30, SP, PC: 33

// What of a perf_event_attr decides the shape of its records.
struct AttrLayout {
  uint64_t sample_type = 0;
  uint64_t read_format = 0;
  uint64_t branch_sample_type = 0;
  uint64_t registers = 0;      // sample_regs_user
  uint32_t stack_bytes = 0;    // sample_stack_user
  bool sample_id_all = true;
  uint64_t period = 1;         // weight of samples that carry none: the fixed sample_period
  uint32_t metric = 0;         // index into SessionInfo.metrics, or kNoMetric
  bool has_stack_id = false;   // our own captures: ADDR is Sample.stack_id, the callchain repeats its StackDef for others
  // A wake-up tracepoint: its samples become Wakeup events. Where its raw data hold the woken tid; 0: another event.
  uint16_t woken_tid_offset = 0;
  bool repeats_stack = false;  // our own captures: another metric of the sample before, without IP and callchain
  bool operator==(const AttrLayout&) const = default;
};
AttrLayout layout_of(const perf_event_attr& attr, uint32_t metric);

enum class DecodeOutcome : uint8_t {
  kEvent,
  kIgnored,    // a type that is known and not needed
  kUnknown,    // a type of a newer kernel or perf
  kMalformed,  // short, or a count inside is larger than the record
  kNoEvent,    // a sample whose id belongs to none of the events
};

struct SampleId {
  Task task;
  uint64_t time_ns = 0, id = 0;
  uint32_t cpu = 0;
};

// What one event of a group had counted when its leader was sampled.
struct GroupValue {
  uint64_t id = 0, count = 0;
};

// Arrays of 64-bit words in a record: used where they lie when aligned and of our byte order, else copied. One record's
// stay valid until reset().
class RecordWords {
 public:
  explicit RecordWords(bool swap);
  void reset() { used_ = 0; }
  std::span<const uint64_t> take(ByteReader& reader, uint64_t count);
  std::span<const uint64_t> join(ByteReader& reader, std::span<const uint64_t> a, std::span<const uint64_t> b);
  std::span<uint64_t> room(ByteReader& reader, size_t count);  // to be filled; none, and the reader fails, beyond a record

 private:
  bool swap_;
  size_t used_ = 0;
  std::unique_ptr<uint64_t[]> copies_;
};

class RecordDecoder {
 public:
  // swap: the records are of the other byte order.
  explicit RecordDecoder(bool swap = false);

  // ids: the event ids that have this layout; none when there is one event only.
  void add_layout(const AttrLayout& layout, std::span<const uint64_t> ids);
  bool has_layouts() const { return !layouts_.empty(); }

  // When the record happened, without decoding it; 0 when it does not say.
  uint64_t time_of_record(std::span<const std::byte> record) const;

  // Decodes one record, header included. What `event` views stays valid until the next call and as long as `record`.
  DecodeOutcome decode(std::span<const std::byte> record, Event& event);

  // Of the sample that was decoded last; empty unless its event leads a group (PERF_FORMAT_GROUP with ids).
  std::span<const GroupValue> group_values() const { return group_values_; }

 private:
  struct Impl;

  const AttrLayout* layout_for(std::span<const std::byte> record) const;
  uint64_t word_at(std::span<const std::byte> record, size_t offset) const;

  bool swap_;
  bool all_have_identifier_ = true;
  std::vector<AttrLayout> layouts_;
  NumberMap<uint64_t, uint32_t> layout_of_id_;
  RecordWords words_;
  std::vector<GroupValue> group_values_;
  uint64_t lone_ip_ = 0;
};

// The layout that encode_record gives a sample: callchain always, registers and stack when there is a snapshot, an
// address when its stack has an id, neither callchain nor IP when it repeats the stack of the sample before.
AttrLayout written_layout(const Sample& sample);
// The trailer of every encoded record has this shape too.
inline constexpr uint64_t kWrittenSampleType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                               PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
                                               PERF_SAMPLE_CALLCHAIN;

// Appends the event as one record in this machine's byte order, marked as coming from event `id`. Fails, appending
// nothing, when it would not fit the 16-bit size. Both chains of a sample with a stack id are written, for other readers. An Mmap with both a file and a build-id keeps the file only: MMAP2
// has room for one of them.
Result<void> encode_record(const Event& event, uint64_t id, std::vector<std::byte>& out);

}  // namespace cprof::event
