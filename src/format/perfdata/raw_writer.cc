// A capture: the pipe header, our session record, a side band attr that gives perf the shape of all trailers, features
// for people, then events. The attr of a metric is written before the first sample that needs it: what a sample carries
// (registers, stack size) is known only then and may change during a run.
#include "format/perfdata/raw_writer.h"

#include <algorithm>
#include <ctime>

#include "format/perfdata/layout.h"
#include "format/perfdata/session_record.h"

namespace cprof::format {
namespace {

using namespace perfdata;

constexpr size_t kStackMemoryPart = 32 * 1024;

template <typename T>
void append(std::vector<std::byte>& out, T value) {
  auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// perf's strings: a length, then the text padded with NULs to that length, a multiple of 64.
void append_text(std::vector<std::byte>& out, std::string_view text) {
  size_t room = (text.size() + 64) / 64 * 64;
  append(out, static_cast<uint32_t>(room));
  auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
  out.resize(out.size() + room - text.size());
}

perf_event_attr attr_of(const event::Metric& metric, const event::AttrLayout& layout) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = metric.type;
  attr.config = metric.config;
  if (metric.freq_hz) attr.freq = 1, attr.sample_freq = metric.freq_hz;
  else attr.sample_period = metric.period ? metric.period : 1;
  attr.sample_type = layout.sample_type;
  attr.sample_regs_user = layout.registers;
  attr.sample_stack_user = layout.stack_bytes;
  attr.exclude_callchain_user = (layout.sample_type & PERF_SAMPLE_STACK_USER) != 0;
  attr.sample_id_all = 1;
  attr.inherit = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  return attr;
}

}  // namespace

Result<void> RawWriter::write_record(uint32_t type, std::span<const std::byte> payload, uint16_t misc) {
  size_t size = (sizeof(perf_event_header) + payload.size() + 7) / 8 * 8;
  if (size > event::kMaxRecordBytes) return fail("a header record of " + std::to_string(size) + " bytes does not fit");
  perf_event_header header{.type = type, .misc = misc, .size = static_cast<uint16_t>(size)};
  TRY(out_.write(std::as_bytes(std::span(&header, 1))));
  TRY(out_.write(payload));
  constexpr std::byte kPadding[8] = {};
  return out_.write(std::span(kPadding).first(size - sizeof(header) - payload.size()));
}

Result<void> RawWriter::write_own(uint64_t tag, std::span<const std::byte> payload) {
  std::vector<std::byte> tagged;
  append(tagged, tag);
  tagged.insert(tagged.end(), payload.begin(), payload.end());
  return write_record(event::kOwnRecord, tagged);
}

Result<void> RawWriter::write_attr(const event::Metric& metric, const event::AttrLayout& layout, uint64_t id) {
  std::vector<std::byte> payload;
  perf_event_attr attr = attr_of(metric, layout);
  if (id == kSideBandId)
    attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.context_switch = 1;
  append(payload, attr);
  append(payload, id);
  TRY(write_record(kHeaderAttr, payload));
  payload.clear();
  append(payload, uint64_t{kUpdateName});
  append(payload, id);
  auto name = std::as_bytes(std::span(std::string_view(metric.name)));
  payload.insert(payload.end(), name.begin(), name.end());
  payload.push_back(std::byte{0});
  return write_record(kEventUpdate, payload);
}

Result<void> RawWriter::write_features() {
  std::string_view arch = info_.arch == event::Arch::kAarch64 ? "aarch64" : "x86_64";
  const std::pair<Feature, std::string_view> texts[] = {
      {kFeatureHostname, info_.hostname}, {kFeatureOsRelease, info_.kernel_release}, {kFeatureArch, arch}};
  for (const auto& [feature, text] : texts) {
    std::vector<std::byte> payload;
    append(payload, uint64_t{feature});
    append_text(payload, text.substr(0, 4096));
    TRY(write_record(kHeaderFeature, payload));
  }
  std::vector<std::byte> cpus;
  append(cpus, uint64_t{kFeatureCpus});
  append(cpus, info_.cpus_online);
  append(cpus, info_.cpus_online);
  TRY(write_record(kHeaderFeature, cpus));
  std::vector<std::byte> command;
  append(command, uint64_t{kFeatureCommand});
  append(command, uint32_t{1});
  append_text(command, std::string_view(info_.command).substr(0, 4096));
  return write_record(kHeaderFeature, command);
}

Result<void> RawWriter::begin(const event::SessionInfo& info) {
  info_ = info;
  TRY(out_.write(kMagic));
  TRY(out_.write(std::as_bytes(std::span(&kPipeHeaderBytes, 1))));
  TRY(write_own(event::kSessionTag, encode_session(info)));
  event::Metric side_band{.name = "side-band", .unit = "count", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};
  TRY(write_attr(side_band, {.sample_type = event::kWrittenSampleType, .metric = event::kNoMetric}, kSideBandId));
  return write_features();
}

// Kernel threads have no user registers and fit any mask.
Result<uint64_t> RawWriter::id_for(const event::Sample& sample) {
  event::AttrLayout wanted = event::written_layout(sample);
  bool any_mask = sample.snapshot && sample.snapshot->registers.abi == PERF_SAMPLE_REGS_ABI_NONE;
  for (const Variant& variant : variants_) {
    if (any_mask && variant.layout.metric == wanted.metric) wanted.registers = variant.layout.registers;
    if (variant.layout == wanted) return variant.id;
  }
  if (sample.metric >= info_.metrics.size()) return fail("a sample of an event that the session does not have");
  if (any_mask) wanted.registers = info_.arch == event::Arch::kAarch64 ? event::kAarch64Registers : event::kX86_64Registers;
  uint64_t id = event_id(sample.metric, variants_.size());
  TRY(write_attr(info_.metrics[sample.metric], wanted, id));
  variants_.push_back({wanted, id});
  return id;
}

Result<void> RawWriter::write_event(const event::Event& event, uint64_t id) {
  buffer_.clear();
  if (!event::encode_record(event, id, buffer_)) {
    dropped_++;
    return {};
  }
  round_open_ = true;
  return out_.write(buffer_);
}

// Longer memory than a record holds goes in parts, one after the other.
Result<void> RawWriter::write_stack_memory(const event::StackMemory& memory) {
  event::StackMemory part = memory;
  size_t done = 0;
  do {
    size_t size = std::min(kStackMemoryPart, memory.bytes.size() - done);
    part.address = memory.address + done;
    part.bytes = memory.bytes.subspan(done, size);
    TRY(write_event(part, kSideBandId));
    done += size;
  } while (done < memory.bytes.size());
  return {};
}

// The kernel's record of a mapping holds device and inode or a build-id, and we know both: the build-id goes ahead.
Result<void> RawWriter::write_build_id(const event::Mmap& mmap) {
  constexpr size_t kIdBytes = 20, kFieldBytes = 24;
  if (mmap.build_id.empty() || mmap.build_id.size() > kIdBytes || mmap.file == event::FileId{}) return {};
  auto& last = build_ids_[std::string(mmap.path)];
  if (std::ranges::equal(last, mmap.build_id)) return {};
  last.assign(mmap.build_id.begin(), mmap.build_id.end());
  std::vector<std::byte> payload;
  append(payload, int32_t{-1});
  payload.insert(payload.end(), last.begin(), last.end());
  payload.resize(sizeof(int32_t) + kIdBytes);
  payload.push_back(static_cast<std::byte>(last.size()));
  payload.resize(sizeof(int32_t) + kFieldBytes);
  for (char c : mmap.path) payload.push_back(static_cast<std::byte>(c));
  payload.push_back(std::byte{0});
  return write_record(kHeaderBuildId, payload, kHasIdSize);
}

Result<void> RawWriter::write_sample(const event::Sample& sample) {
  uint64_t id = TRY(id_for(sample));
  return write_event(sample.stack_id ? chains_.with_chains(sample) : sample, id);
}

Result<void> RawWriter::on_event(const event::Event& event) {
  if (const auto* sample = std::get_if<event::Sample>(&event)) return write_sample(*sample);
  if (const auto* def = std::get_if<event::StackDef>(&event)) chains_.define(*def);
  if (const auto* fork = std::get_if<event::Fork>(&event); fork && fork->child.pid != fork->parent.pid)
    chains_.forget(fork->child.pid);
  if (const auto* memory = std::get_if<event::StackMemory>(&event)) return write_stack_memory(*memory);
  if (const auto* mmap = std::get_if<event::Mmap>(&event)) TRY(write_build_id(*mmap));
  return write_event(event, kSideBandId);
}

// Our replay takes the time from here; perf looks at the type only.
Result<void> RawWriter::on_round(uint64_t time_ns) {
  if (!std::exchange(round_open_, false)) return {};
  return write_record(kFinishedRound, std::as_bytes(std::span(&time_ns, 1)));
}

Result<void> RawWriter::finish(uint64_t end_ns) {
  TRY(write_own(event::kEndTag, std::as_bytes(std::span(&end_ns, 1))));
  return out_.commit();
}

}  // namespace cprof::format
