// Reading records. A record is a header {type, misc, size}, a body that depends on the type, and, when sample_id_all is
// set, a trailer {pid/tid, time, id, stream, cpu, identifier} of the fields that sample_type names. A SAMPLE has no
// trailer: its fields follow each other in a fixed order, each present when its bit in sample_type is set. Both are
// tables below. Callchains and registers are arrays of 64-bit words: they are used where they lie when aligned and of
// our byte order, else copied to the scratch words.
#include "event/perf_record.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>

namespace cprof::event {
namespace {

constexpr size_t kHeaderBytes = sizeof(perf_event_header);
constexpr size_t kMostCopiedWords = 3 * 8192;  // a record has fewer than 8192 words; chain parts may be copied once more
constexpr size_t kMaxBuildIdBytes = 20;
constexpr size_t kBranchBytes = 24;                      // from, to, flags
constexpr uint64_t kBranchCounters = uint64_t{1} << 19;  // PERF_SAMPLE_BRANCH_COUNTERS, of Linux 6.8

struct Header {
  uint32_t type = 0;
  uint16_t misc = 0;
};

// The trailer's fields in their order; TIME is what sorting looks for.
constexpr std::array<uint64_t, 6> kTrailerFields = {PERF_SAMPLE_TID,       PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
                                                    PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,  PERF_SAMPLE_IDENTIFIER};
constexpr uint64_t kTrailerMask = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
                                  PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

size_t words(uint64_t bits) { return static_cast<size_t>(__builtin_popcountll(bits)); }
size_t trailer_bytes(const AttrLayout& layout) {
  return layout.sample_id_all ? words(layout.sample_type & kTrailerMask) * 8 : 0;
}

bool is_kernel_mode(uint16_t misc) {
  uint16_t mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;
  return mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_HYPERVISOR;
}

Task read_task(ByteReader& reader) {
  Task task;
  task.pid = static_cast<int32_t>(reader.u32());
  task.tid = static_cast<int32_t>(reader.u32());
  return task;
}

SampleId read_trailer(ByteReader reader, uint64_t sample_type) {
  SampleId result;
  for (uint64_t field : kTrailerFields) {
    if (!(sample_type & field)) continue;
    switch (field) {
      case PERF_SAMPLE_TID: result.task = read_task(reader); break;
      case PERF_SAMPLE_TIME: result.time_ns = reader.u64(); break;
      case PERF_SAMPLE_CPU: result.cpu = reader.u32(), reader.skip(4); break;
      case PERF_SAMPLE_STREAM_ID: reader.skip(8); break;
      default: result.id = reader.u64();
    }
  }
  return result;
}

// What the body readers of the side band see.
struct Body {
  ByteReader reader;
  uint16_t misc;
  SampleId id;
  RecordWords& words;
};

Event read_mmap(Body& body, bool second) {
  ByteReader& r = body.reader;
  Mmap mmap{.time_ns = body.id.time_ns, .task = read_task(r), .start = r.u64(), .length = r.u64(), .file_offset = r.u64()};
  if (!second) {
    mmap.protection = PROT_READ | (body.misc & PERF_RECORD_MISC_MMAP_DATA ? 0 : PROT_EXEC);
    mmap.flags = MAP_PRIVATE;
  } else {
    if (body.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
      uint8_t size = r.u8();
      r.skip(3);
      auto bytes = r.bytes(kMaxBuildIdBytes);
      if (size > kMaxBuildIdBytes) r.fail();
      else if (r.ok()) mmap.build_id = bytes.first(size);
    } else {
      mmap.file.major = r.u32();
      mmap.file.minor = r.u32();
      mmap.file.inode = r.u64();
      mmap.file.generation = r.u64();
    }
    mmap.protection = r.u32();
    mmap.flags = r.u32();
  }
  mmap.path = r.cstring();
  return mmap;
}

Event read_mmap1(Body& body) { return read_mmap(body, false); }
Event read_mmap2(Body& body) { return read_mmap(body, true); }

Event read_comm(Body& body) {
  Comm comm{.time_ns = body.id.time_ns, .task = read_task(body.reader)};
  comm.name = body.reader.cstring();
  comm.exec = body.misc & PERF_RECORD_MISC_COMM_EXEC;
  return comm;
}

Fork read_lineage(Body& body) {
  Fork fork;
  ByteReader& r = body.reader;
  fork.child.pid = static_cast<int32_t>(r.u32());
  fork.parent.pid = static_cast<int32_t>(r.u32());
  fork.child.tid = static_cast<int32_t>(r.u32());
  fork.parent.tid = static_cast<int32_t>(r.u32());
  fork.time_ns = r.u64();
  // perf's own synthesized records leave the body's time 0 or the trailer's: the later one is when it happened.
  fork.time_ns = std::max(fork.time_ns, body.id.time_ns);
  return fork;
}

Event read_fork(Body& body) { return read_lineage(body); }
Event read_exit(Body& body) {
  Fork lineage = read_lineage(body);
  return Exit{.time_ns = lineage.time_ns, .task = lineage.child};
}

// The kernel's has no body; in ours what BPF told besides may be there.
Event read_switch(Body& body) {
  const SampleId& id = body.id;
  bool has_more = body.reader.remaining() != 0;
  if (!(body.misc & PERF_RECORD_MISC_SWITCH_OUT)) {
    SwitchIn in{.time_ns = id.time_ns, .task = id.task, .cpu = id.cpu};
    if (has_more) in.woken_ns = body.reader.u64(), in.waker = read_task(body.reader);
    return in;
  }
  SwitchOut out{.time_ns = id.time_ns, .task = id.task, .cpu = id.cpu,
                .preempted = (body.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0};
  if (has_more) out.stack_id = body.reader.u64();
  if (body.reader.remaining() != 0) out.uninterruptible = body.reader.u64() & kUninterruptible;
  return out;
}

// The body names the other task of the switch; the trailer's is the one that comes or goes.
Event read_switch_cpu_wide(Body& body) {
  body.reader.skip(8);
  return read_switch(body);
}

Event read_lost(Body& body) {
  body.reader.skip(8);
  return Lost{.time_ns = body.id.time_ns, .cpu = body.id.cpu, .kind = LostKind::kRecords, .count = body.reader.u64()};
}

Event read_lost_samples(Body& body) {
  return Lost{.time_ns = body.id.time_ns, .cpu = body.id.cpu, .kind = LostKind::kSamples, .count = body.reader.u64()};
}

Event read_throttling(Body& body, bool on) {
  Throttle throttle{.time_ns = body.reader.u64(), .cpu = body.id.cpu, .on = on};
  body.reader.skip(16);
  return throttle;
}
Event read_throttle(Body& body) { return read_throttling(body, true); }
Event read_unthrottle(Body& body) { return read_throttling(body, false); }

Event read_kernel_symbol(Body& body) {
  ByteReader& r = body.reader;
  KernelSymbol symbol{.time_ns = body.id.time_ns, .start = r.u64(), .length = r.u32()};
  r.skip(2);  // of which kind
  symbol.is_removed = r.u16() & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
  symbol.name = r.cstring();
  return symbol;
}

Event read_stack_memory(Body& body) {
  StackMemory memory{.time_ns = body.id.time_ns, .task = body.id.task, .address = body.reader.u64()};
  uint64_t size = body.reader.u64();
  memory.bytes = body.reader.bytes(size);
  return memory;
}

Event read_stack_def(Body& body) {
  ByteReader& r = body.reader;
  StackDef def{.time_ns = body.id.time_ns, .task = body.id.task, .id = r.u64()};
  uint64_t end = r.u64(), kernel_count = r.u64(), user_count = r.u64();
  if (end > static_cast<uint64_t>(WalkEnd::kUnsupportedAbi) || def.id == 0) r.fail();
  else def.user_end = static_cast<WalkEnd>(end);
  def.kernel_chain = body.words.take(r, kernel_count);
  def.user_chain = body.words.take(r, user_count);
  return def;
}

Event read_count(Body& body) {
  ByteReader& r = body.reader;
  Count count{.time_ns = body.id.time_ns, .task = body.id.task, .metric = static_cast<uint32_t>(r.u64())};
  count.samples = r.u64();
  count.weight = r.u64();
  count.stack_id = r.u64();
  count.in_kernel = r.u64() != 0;
  return count;
}

Event read_wakeup(Body& body) {
  return Wakeup{.time_ns = body.id.time_ns, .task = body.id.task, .waker = read_task(body.reader)};
}

Event read_cgroup(Body& body) {
  return Cgroup{.time_ns = body.id.time_ns, .task = body.id.task, .path = body.reader.cstring()};
}

struct OwnRow {
  uint64_t tag;
  Event (*read)(Body&);
};
constexpr OwnRow kOwnRecords[] = {{kStackMemoryTag, read_stack_memory},
                                  {kStackDefTag, read_stack_def},
                                  {kCountTag, read_count},
                                  {kWakeupTag, read_wakeup},
                                  {kCgroupTag, read_cgroup}};

Event read_own(Body& body) {
  const uint64_t tag = body.reader.u64();
  for (const OwnRow& row : kOwnRecords)
    if (row.tag == tag) return row.read(body);
  body.reader.fail();
  return {};
}

// Indexed by type. A null reader is a type we know and do not need.
using BodyReader = Event (*)(Body&);
struct TypeRow {
  bool known = false;
  BodyReader read = nullptr;
};
constexpr auto kTypes = [] {
  std::array<TypeRow, PERF_RECORD_AUX_OUTPUT_HW_ID + 1> rows{};
  for (size_t type = PERF_RECORD_MMAP; type < rows.size(); type++) rows[type].known = true;
  rows[PERF_RECORD_MMAP].read = read_mmap1;
  rows[PERF_RECORD_LOST].read = read_lost;
  rows[PERF_RECORD_COMM].read = read_comm;
  rows[PERF_RECORD_EXIT].read = read_exit;
  rows[PERF_RECORD_THROTTLE].read = read_throttle;
  rows[PERF_RECORD_UNTHROTTLE].read = read_unthrottle;
  rows[PERF_RECORD_FORK].read = read_fork;
  rows[PERF_RECORD_MMAP2].read = read_mmap2;
  rows[PERF_RECORD_LOST_SAMPLES].read = read_lost_samples;
  rows[PERF_RECORD_SWITCH].read = read_switch;
  rows[PERF_RECORD_SWITCH_CPU_WIDE].read = read_switch_cpu_wide;
  rows[PERF_RECORD_KSYMBOL].read = read_kernel_symbol;
  return rows;
}();

TypeRow row_of(uint32_t type) {
  if (type == kOwnRecord) return {true, read_own};
  return type < kTypes.size() ? kTypes[type] : TypeRow{};
}

}  // namespace

bool is_event_tag(uint64_t tag) {
  return std::ranges::any_of(kOwnRecords, [&](const OwnRow& row) { return row.tag == tag; });
}

AttrLayout layout_of(const perf_event_attr& attr, uint32_t metric) {
  return AttrLayout{.sample_type = attr.sample_type,
                    .read_format = attr.read_format,
                    .branch_sample_type = attr.branch_sample_type,
                    .registers = attr.sample_regs_user,
                    .stack_bytes = attr.sample_stack_user,
                    .sample_id_all = attr.sample_id_all != 0,
                    .period = attr.freq || !attr.sample_period ? 1 : attr.sample_period,
                    .metric = metric};
}

// One SAMPLE being read. A member function per field; the table gives their order.
struct RecordDecoder::Impl {
  RecordDecoder& decoder;
  const AttrLayout& layout;
  ByteReader reader;
  Header header;
  Sample sample;
  std::span<const std::byte> raw_data = {};

  std::span<const uint64_t> take_words(uint64_t count) { return decoder.words_.take(reader, count); }

  void skip8() { reader.skip(8); }
  void ip() { sample.ip = reader.u64(); }
  void tid() { sample.task = read_task(reader); }
  void time() { sample.time_ns = reader.u64(); }
  void cpu() { sample.cpu = reader.u32(), reader.skip(4); }
  void address() {
    uint64_t value = reader.u64();
    if (layout.has_stack_id) sample.stack_id = value;
  }
  void period() { sample.period = reader.u64(); }

  // read_format: a value or a group of them, each with optional id and lost count, between optional times.
  void read_values() {
    uint64_t format = layout.read_format;
    uint64_t each = 1 + words(format & (PERF_FORMAT_ID | PERF_FORMAT_LOST));
    uint64_t times = words(format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
    uint64_t count = format & PERF_FORMAT_GROUP ? reader.u64() : 1;
    if (count > reader.remaining() / 8) return reader.fail();
    constexpr uint64_t kNamed = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
    if ((format & kNamed) != kNamed) return reader.skip((times + count * each) * 8);
    reader.skip(times * 8);
    for (uint64_t i = 0; i < count && reader.ok(); i++) {
      uint64_t value = reader.u64(), id = reader.u64();
      reader.skip((each - 2) * 8);
      decoder.group_values_.push_back({id, value});
    }
  }

  void add_part(std::span<const uint64_t>& chain, std::span<const uint64_t> part) {
    chain = chain.empty() ? part : decoder.words_.join(reader, chain, part);
  }

  // Words above PERF_CONTEXT_MAX are markers: what follows was walked in that mode.
  void callchain() {
    auto chain = take_words(reader.u64());
    if (layout.has_stack_id) return;
    bool kernel = is_kernel_mode(header.misc);
    size_t start = 0;
    for (size_t i = 0; i <= chain.size(); i++) {
      bool marker = i < chain.size() && chain[i] >= static_cast<uint64_t>(PERF_CONTEXT_MAX);
      if (i < chain.size() && !marker) continue;
      if (i > start) add_part(kernel ? sample.kernel_chain : sample.user_chain, chain.subspan(start, i - start));
      start = i + 1;
      if (marker)
        kernel = chain[i] == static_cast<uint64_t>(PERF_CONTEXT_KERNEL) ||
                 chain[i] == static_cast<uint64_t>(PERF_CONTEXT_GUEST_KERNEL) ||
                 chain[i] == static_cast<uint64_t>(PERF_CONTEXT_HV);
    }
  }

  void raw() {
    uint32_t size = reader.u32();
    raw_data = reader.bytes(size);
  }

  // What perf makes of a trace event: the task is the one that ran, which is the waker unless an interrupt woke.
  bool to_wakeup(Event& event) {
    constexpr size_t kFlagsOffset = 2;  // of common_flags, in every trace event
    constexpr uint8_t kInInterrupt = 0x08 | 0x10;
    if (!read()) return false;
    ByteReader in(raw_data, decoder.swap_);
    in.skip(kFlagsOffset);
    const uint8_t flags = in.u8();
    in.seek(layout.woken_tid_offset);
    Wakeup wakeup{.time_ns = sample.time_ns, .task = {-1, static_cast<int32_t>(in.u32())}};
    if (!(flags & kInInterrupt) && sample.task.pid > 0) wakeup.waker = sample.task;
    event = wakeup;
    return in.ok();
  }

  void branch_stack() {
    const uint64_t count = reader.u64();
    if (layout.branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX) reader.skip(8);
    if (count > reader.remaining() / kBranchBytes) return reader.fail();
    if (count != 0 && (layout.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK)) call_stack(static_cast<size_t>(count));
    else reader.skip(count * kBranchBytes);
    if (layout.branch_sample_type & kBranchCounters) reader.skip(count * 8);
  }

  // --call-graph lbr: the processor's own record of the calls that have not returned, innermost first, takes the place of
  // the walk by frame pointers. It names the calls themselves; a chain holds what they return to.
  void call_stack(size_t count) {
    std::span<uint64_t> chain = decoder.words_.room(reader, count + 1);
    if (chain.empty()) return;
    size_t used = 1;
    for (size_t i = 0; i < count; i++) {
      const uint64_t call = reader.u64(), callee = reader.u64();
      reader.skip(kBranchBytes - 16);
      if (i == 0) chain[0] = sample.user_chain.empty() ? callee : sample.user_chain[0];
      if (call != 0 && used == i + 1) chain[used++] = call + 1;
    }
    sample.user_chain = chain.first(used);
  }

  void registers() {
    Snapshot snapshot{.requested_bytes = layout.stack_bytes};
    snapshot.registers.abi = reader.u64();
    if (snapshot.registers.abi != PERF_SAMPLE_REGS_ABI_NONE) {
      snapshot.registers.mask = layout.registers;
      snapshot.registers.values = take_words(words(layout.registers));
    }
    sample.snapshot = snapshot;
  }

  // The kernel always takes the requested room; only dyn_size bytes of it were written.
  void stack() {
    uint64_t size = reader.u64();
    if (size == 0) return;
    auto bytes = reader.bytes(size);
    uint64_t written = reader.u64();
    if (!reader.ok() || written > size) return reader.fail();
    if (!sample.snapshot) sample.snapshot = Snapshot{.requested_bytes = layout.stack_bytes};
    sample.snapshot->stack = bytes.first(static_cast<size_t>(written));
    sample.snapshot->is_full = written == size;
  }

  bool read() {
    struct Field {
      uint64_t bit;
      void (Impl::*take)();
    };
    static constexpr Field kFields[] = {
        {PERF_SAMPLE_IDENTIFIER, &Impl::skip8},   {PERF_SAMPLE_IP, &Impl::ip},
        {PERF_SAMPLE_TID, &Impl::tid},            {PERF_SAMPLE_TIME, &Impl::time},
        {PERF_SAMPLE_ADDR, &Impl::address},       {PERF_SAMPLE_ID, &Impl::skip8},
        {PERF_SAMPLE_STREAM_ID, &Impl::skip8},    {PERF_SAMPLE_CPU, &Impl::cpu},
        {PERF_SAMPLE_PERIOD, &Impl::period},      {PERF_SAMPLE_READ, &Impl::read_values},
        {PERF_SAMPLE_CALLCHAIN, &Impl::callchain}, {PERF_SAMPLE_RAW, &Impl::raw},
        {PERF_SAMPLE_BRANCH_STACK, &Impl::branch_stack}, {PERF_SAMPLE_REGS_USER, &Impl::registers},
        {PERF_SAMPLE_STACK_USER, &Impl::stack},
    };
    sample.metric = layout.metric;
    sample.period = layout.period;
    sample.in_kernel = is_kernel_mode(header.misc);
    sample.repeats_stack = layout.repeats_stack;
    for (const Field& field : kFields)
      if (layout.sample_type & field.bit) (this->*field.take)();
    // Recorded without stacks: the instruction is all there is.
    constexpr uint64_t kStacks = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER;
    if ((layout.sample_type & (PERF_SAMPLE_IP | kStacks)) == PERF_SAMPLE_IP) {
      decoder.lone_ip_ = sample.ip;
      (sample.in_kernel ? sample.kernel_chain : sample.user_chain) = {&decoder.lone_ip_, 1};
    }
    return reader.ok();
  }
};

RecordWords::RecordWords(bool swap)
    : swap_(swap), copies_(std::make_unique_for_overwrite<uint64_t[]>(kMostCopiedWords)) {}

std::span<const uint64_t> RecordWords::take(ByteReader& reader, uint64_t count) {
  if (count > reader.remaining() / 8) {
    reader.fail();
    return {};
  }
  size_t n = static_cast<size_t>(count);
  auto bytes = reader.bytes(n * 8);
  if (!swap_ && reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t) == 0)
    return {reinterpret_cast<const uint64_t*>(bytes.data()), n};
  ByteReader copy(bytes, swap_);
  uint64_t* out = copies_.get() + used_;
  for (size_t i = 0; i < n; i++) out[i] = copy.u64();
  used_ += n;
  return {out, n};
}

std::span<const uint64_t> RecordWords::join(ByteReader& reader, std::span<const uint64_t> a, std::span<const uint64_t> b) {
  std::span<uint64_t> joined = room(reader, a.size() + b.size());
  if (joined.empty()) return {};
  std::copy(a.begin(), a.end(), joined.begin());
  std::copy(b.begin(), b.end(), joined.begin() + static_cast<ptrdiff_t>(a.size()));
  return joined;
}

std::span<uint64_t> RecordWords::room(ByteReader& reader, size_t count) {
  if (count > kMostCopiedWords - used_) {
    reader.fail();
    return {};
  }
  used_ += count;
  return {copies_.get() + used_ - count, count};
}

RecordDecoder::RecordDecoder(bool swap) : swap_(swap), words_(swap) {}

void RecordDecoder::add_layout(const AttrLayout& layout, std::span<const uint64_t> ids) {
  uint32_t index = 0;
  while (index < layouts_.size() && layouts_[index] != layout) index++;
  if (index == layouts_.size()) layouts_.push_back(layout);
  if (!(layout.sample_type & PERF_SAMPLE_IDENTIFIER)) all_have_identifier_ = false;
  for (uint64_t id : ids) layout_of_id_[id] = index;
}

uint64_t RecordDecoder::word_at(std::span<const std::byte> record, size_t offset) const {
  if (offset + 8 > record.size()) return 0;
  ByteReader reader(record.subspan(offset, 8), swap_);
  return reader.u64();
}

// With several events the id says whose layout it is: first in a sample and last elsewhere when it is the IDENTIFIER,
// else after the fields that come before ID. Records that a tool made up carry id 0: the first event's layout.
const AttrLayout* RecordDecoder::layout_for(std::span<const std::byte> record) const {
  if (layouts_.empty()) return nullptr;
  const AttrLayout& first = layouts_.front();
  if (layouts_.size() == 1) return &first;
  ByteReader reader(record, swap_);
  bool sample = reader.u32() == PERF_RECORD_SAMPLE;
  size_t offset;
  if (all_have_identifier_) {
    offset = sample ? kHeaderBytes : record.size() - 8;
  } else {
    if (!sample || !(first.sample_type & PERF_SAMPLE_ID)) return &first;
    uint64_t before = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
    offset = kHeaderBytes + words(first.sample_type & before) * 8;
  }
  uint64_t id = word_at(record, offset);
  auto it = layout_of_id_.find(id);
  if (it != layout_of_id_.end()) return &layouts_[it->second];
  return sample && id != 0 ? nullptr : &first;
}

uint64_t RecordDecoder::time_of_record(std::span<const std::byte> record) const {
  if (record.size() < kHeaderBytes) return 0;
  const AttrLayout* layout = layout_for(record);
  if (!layout || !(layout->sample_type & PERF_SAMPLE_TIME)) return 0;
  ByteReader reader(record, swap_);
  uint32_t type = reader.u32();
  if (type == PERF_RECORD_SAMPLE) {
    uint64_t before = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID;
    return word_at(record, kHeaderBytes + words(layout->sample_type & before) * 8);
  }
  if (!layout->sample_id_all) return 0;
  uint64_t from_time = kTrailerMask & ~uint64_t{PERF_SAMPLE_TID};
  size_t back = words(layout->sample_type & from_time) * 8;
  return record.size() < kHeaderBytes + back ? 0 : word_at(record, record.size() - back);
}

DecodeOutcome RecordDecoder::decode(std::span<const std::byte> record, Event& event) {
  words_.reset();
  group_values_.clear();
  ByteReader reader(record, swap_);
  Header header{reader.u32(), reader.u16()};
  uint16_t size = reader.u16();
  if (!reader.ok() || size != record.size()) return DecodeOutcome::kMalformed;
  TypeRow row = row_of(header.type);
  if (!row.known) return DecodeOutcome::kUnknown;
  if (!row.read && header.type != PERF_RECORD_SAMPLE) return DecodeOutcome::kIgnored;
  const AttrLayout* layout = layout_for(record);
  if (!layout) return DecodeOutcome::kNoEvent;
  if (header.type == PERF_RECORD_SAMPLE) {
    Impl impl{*this, *layout, reader, header, {}};
    if (layout->woken_tid_offset) return impl.to_wakeup(event) ? DecodeOutcome::kEvent : DecodeOutcome::kMalformed;
    if (layout->metric == kNoMetric) return DecodeOutcome::kIgnored;
    if (!impl.read()) return DecodeOutcome::kMalformed;
    event = impl.sample;
    return DecodeOutcome::kEvent;
  }
  size_t trailer = trailer_bytes(*layout);
  if (reader.remaining() < trailer) return DecodeOutcome::kMalformed;
  size_t body_end = record.size() - trailer;
  Body body{ByteReader(record.subspan(kHeaderBytes, body_end - kHeaderBytes), swap_), header.misc, {}, words_};
  if (trailer) body.id = read_trailer(ByteReader(record.subspan(body_end), swap_), layout->sample_type);
  event = row.read(body);
  return body.reader.ok() ? DecodeOutcome::kEvent : DecodeOutcome::kMalformed;
}

}  // namespace cprof::event
