// Writing records: one function per event type appends the body, finish() adds the trailer and the size.
#include <algorithm>

#include "event/perf_record.h"

namespace cprof::event {
namespace {

class Writer {
 public:
  Writer(std::vector<std::byte>& out, uint32_t type, uint16_t misc) : out_(out), start_(out.size()) {
    put(type);
    put(misc);
    put(uint16_t{0});
  }

  template <typename T>
  void put(T value) {
    auto bytes = std::as_bytes(std::span(&value, 1));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  void put(const Task& task) { put(task.pid), put(task.tid); }
  template <typename T>
  void put_all(std::span<const T> values) {
    auto bytes = std::as_bytes(values);
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  void pad(size_t multiple = 8) { out_.resize(out_.size() + (multiple - (out_.size() - start_) % multiple) % multiple); }
  void put_text(std::string_view text) {
    put_all(std::span<const char>(text));
    put(char{0});
    pad();
  }
  void put_trailer(const SampleId& id) {
    put(id.task);
    put(id.time_ns);
    put(uint64_t{id.cpu});
    put(id.id);
  }

  Result<void> finish() {
    size_t size = out_.size() - start_;
    if (size > kMaxRecordBytes) {
      out_.resize(start_);
      return fail("a record of " + std::to_string(size) + " bytes is larger than the format's 65528");
    }
    uint16_t size16 = static_cast<uint16_t>(size);
    std::copy_n(reinterpret_cast<const std::byte*>(&size16), 2, out_.begin() + static_cast<ptrdiff_t>(start_) + 6);
    return {};
  }

 private:
  std::vector<std::byte>& out_;
  size_t start_;
};

constexpr uint16_t kUser = PERF_RECORD_MISC_USER;

void put_chain(Writer& w, const Sample& sample) {
  uint64_t count = 0;
  for (auto chain : {sample.kernel_chain, sample.user_chain}) count += chain.empty() ? 0 : chain.size() + 1;
  w.put(count);
  if (!sample.kernel_chain.empty()) w.put(static_cast<uint64_t>(PERF_CONTEXT_KERNEL)), w.put_all(sample.kernel_chain);
  if (!sample.user_chain.empty()) w.put(static_cast<uint64_t>(PERF_CONTEXT_USER)), w.put_all(sample.user_chain);
}

void put_snapshot(Writer& w, const Snapshot& snapshot) {
  w.put(snapshot.registers.abi);
  if (snapshot.registers.abi != PERF_SAMPLE_REGS_ABI_NONE) w.put_all(snapshot.registers.values);
  uint64_t size = snapshot.stack.size();
  // Only what was written is kept of the room that the kernel took, and a little more when it was not filled.
  uint64_t room = snapshot.is_full ? (size + 7) / 8 * 8 : (size / 8 + 1) * 8;
  w.put(size == 0 ? 0 : room);
  if (size == 0) return;
  w.put_all(snapshot.stack);
  w.pad();
  if (room - size == 8) w.put(uint64_t{0});
  w.put(size);
}

struct Encoder {
  uint64_t id;
  std::vector<std::byte>& out;

  Result<void> finish(Writer& w, const SampleId& trailer) {
    w.put_trailer(trailer);
    return w.finish();
  }

  Result<void> operator()(const Sample& s) {
    Writer w(out, PERF_RECORD_SAMPLE, s.in_kernel ? PERF_RECORD_MISC_KERNEL : kUser);
    w.put(id);
    if (!s.repeats_stack) w.put(s.ip);
    w.put(s.task);
    w.put(s.time_ns);
    if (s.stack_id) w.put(s.stack_id);
    w.put(uint64_t{s.cpu});
    w.put(s.period);
    if (!s.repeats_stack) put_chain(w, s);
    if (s.snapshot) put_snapshot(w, *s.snapshot);
    return w.finish();
  }

  Result<void> operator()(const StackMemory& m) {
    Writer w(out, kOwnRecord, kUser);
    w.put(kStackMemoryTag);
    w.put(m.address);
    w.put(uint64_t{m.bytes.size()});
    w.put_all(m.bytes);
    w.pad();
    return finish(w, {m.task, m.time_ns, id, 0});
  }

  Result<void> operator()(const Mmap& m) {
    bool by_build_id = !m.build_id.empty() && m.file == FileId{};
    if (m.build_id.size() > 20) return fail("a build-id of more than 20 bytes does not fit a mapping record");
    uint16_t misc = m.task.pid == -1 ? PERF_RECORD_MISC_KERNEL : kUser;
    Writer w(out, PERF_RECORD_MMAP2, misc | (by_build_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0));
    w.put(m.task);
    w.put(m.start);
    w.put(m.length);
    w.put(m.file_offset);
    if (by_build_id) {
      std::byte padded[20] = {};
      std::copy(m.build_id.begin(), m.build_id.end(), padded);
      w.put(static_cast<uint32_t>(m.build_id.size()));
      w.put_all(std::span<const std::byte>(padded));
    } else {
      w.put(m.file.major);
      w.put(m.file.minor);
      w.put(m.file.inode);
      w.put(m.file.generation);
    }
    w.put(m.protection);
    w.put(m.flags);
    w.put_text(m.path);
    return finish(w, {m.task, m.time_ns, id, 0});
  }

  Result<void> operator()(const KernelSymbol& s) {
    Writer w(out, PERF_RECORD_KSYMBOL, PERF_RECORD_MISC_KERNEL);
    w.put(s.start);
    w.put(s.length);
    w.put(uint16_t{PERF_RECORD_KSYMBOL_TYPE_BPF});
    w.put(static_cast<uint16_t>(s.is_removed ? PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER : 0));
    w.put_text(s.name);
    return finish(w, {{}, s.time_ns, id, 0});
  }

  Result<void> operator()(const Comm& c) {
    Writer w(out, PERF_RECORD_COMM, c.exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
    w.put(c.task);
    w.put_text(c.name);
    return finish(w, {c.task, c.time_ns, id, 0});
  }

  Result<void> lineage(uint32_t type, Task child, Task parent, uint64_t time_ns) {
    Writer w(out, type, 0);
    w.put(child.pid);
    w.put(parent.pid);
    w.put(child.tid);
    w.put(parent.tid);
    w.put(time_ns);
    return finish(w, {type == PERF_RECORD_FORK ? parent : child, time_ns, id, 0});
  }
  Result<void> operator()(const Fork& f) { return lineage(PERF_RECORD_FORK, f.child, f.parent, f.time_ns); }
  Result<void> operator()(const Exit& e) { return lineage(PERF_RECORD_EXIT, e.task, e.task, e.time_ns); }

  Result<void> operator()(const SwitchOut& s) {
    Writer w(out, PERF_RECORD_SWITCH,
             PERF_RECORD_MISC_SWITCH_OUT | (s.preempted ? PERF_RECORD_MISC_SWITCH_OUT_PREEMPT : 0));
    if (s.stack_id || s.uninterruptible) w.put(s.stack_id);
    if (s.uninterruptible) w.put(kUninterruptible);
    return finish(w, {s.task, s.time_ns, id, s.cpu});
  }
  Result<void> operator()(const SwitchIn& s) {
    Writer w(out, PERF_RECORD_SWITCH, 0);
    if (s.woken_ns || s.waker != Task{}) w.put(s.woken_ns), w.put(s.waker);
    return finish(w, {s.task, s.time_ns, id, s.cpu});
  }

  Result<void> operator()(const Lost& l) {
    bool records = l.kind == LostKind::kRecords;
    Writer w(out, records ? PERF_RECORD_LOST : PERF_RECORD_LOST_SAMPLES, 0);
    if (records) w.put(id);
    w.put(l.count);
    return finish(w, {{}, l.time_ns, id, l.cpu});
  }

  Result<void> operator()(const Throttle& t) {
    Writer w(out, t.on ? PERF_RECORD_THROTTLE : PERF_RECORD_UNTHROTTLE, 0);
    w.put(t.time_ns);
    w.put(id);
    w.put(id);
    return finish(w, {{}, t.time_ns, id, t.cpu});
  }

  Result<void> operator()(const StackDef& d) {
    Writer w(out, kOwnRecord, kUser);
    w.put(kStackDefTag);
    w.put(d.id);
    w.put(static_cast<uint64_t>(d.user_end));
    w.put(uint64_t{d.kernel_chain.size()});
    w.put(uint64_t{d.user_chain.size()});
    w.put_all(d.kernel_chain);
    w.put_all(d.user_chain);
    return finish(w, {d.task, d.time_ns, id, 0});
  }

  Result<void> operator()(const Count& c) {
    Writer w(out, kOwnRecord, kUser);
    w.put(kCountTag);
    for (uint64_t value : {uint64_t{c.metric}, c.samples, c.weight, c.stack_id, uint64_t{c.in_kernel}}) w.put(value);
    return finish(w, {c.task, c.time_ns, id, 0});
  }

  Result<void> operator()(const Wakeup& u) {
    Writer w(out, kOwnRecord, kUser);
    w.put(kWakeupTag);
    w.put(u.waker);
    return finish(w, {u.task, u.time_ns, id, 0});
  }

  Result<void> operator()(const Cgroup& c) {
    Writer w(out, kOwnRecord, kUser);
    w.put(kCgroupTag);
    w.put_text(c.path);
    return finish(w, {c.task, c.time_ns, id, 0});
  }
};

}  // namespace

AttrLayout written_layout(const Sample& sample) {
  AttrLayout layout{.sample_type = kWrittenSampleType, .metric = sample.metric};
  if (sample.repeats_stack) {
    layout.sample_type &= ~uint64_t{PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN};
    layout.repeats_stack = true;
  }
  if (sample.stack_id) {
    layout.sample_type |= PERF_SAMPLE_ADDR;
    layout.has_stack_id = true;
  }
  if (!sample.snapshot) return layout;
  layout.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  layout.registers = sample.snapshot->registers.mask;
  layout.stack_bytes = sample.snapshot->requested_bytes;
  return layout;
}

Result<void> encode_record(const Event& event, uint64_t id, std::vector<std::byte>& out) {
  return std::visit(Encoder{id, out}, event);
}

}  // namespace cprof::event
