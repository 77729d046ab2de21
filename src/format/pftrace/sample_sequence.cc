#include "format/pftrace/sample_sequence.h"

#include <algorithm>

#include "base/ascii.h"
#include "format/pftrace/known_counters.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

using protozero::pbf_writer;

// "0123ab" as the three bytes it stands for, as Perfetto takes a build-id; anything else as it is.
std::string bytes_of_hex(std::string_view hex) {
  if (hex.size() % 2 || !std::ranges::all_of(hex, [](char c) { return hex_digit(c) >= 0; })) return std::string(hex);
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(hex_digit(hex[i]) << 4 | hex_digit(hex[i + 1]));
  return bytes;
}

// The nearest, so that 1,001,001 ns are 999 Hz again.
uint64_t hertz_of(uint64_t interval_ns) {
  return std::max<uint64_t>(1, (1'000'000'000 + interval_ns / 2) / interval_ns);
}

uint32_t kind_number(profile::FrameKind kind) {
  switch (kind) {
    case profile::FrameKind::kKernel: return pft::Frame::kKernel;
    case profile::FrameKind::kJit: return pft::Frame::kJit;
    case profile::FrameKind::kInterpreted: return pft::Frame::kInterpreted;
    default: return pft::Frame::kNative;
  }
}

}  // namespace

SampleSequence::SampleSequence(const profile::Profile& profile, const AddressBook& book, profile::MetricId metric,
                               uint32_t sequence, PacketWriter& packets)
    : profile_(profile),
      book_(book),
      metric_(metric),
      sequence_(sequence),
      packets_(packets),
      walker_(profile),
      callstacks_(profile.sites.size() + 1),
      cut_callstacks_(profile.sites.size() + 1),
      first_frames_(profile.locations.size()),
      mappings_(book.modules().size()) {}

// The timebase names the tracks; without one Perfetto says cpu-clock.
Result<void> SampleSequence::begin() {
  const profile::Metric& metric = profile_.metrics[metric_.index()];
  const std::string_view name = profile_.text(metric.name);
  std::string timebase, perf_defaults, defaults;
  pbf_writer t(timebase);
  if (profile_.run.sampling_interval_ns)
    t.add_uint64(pft::Defaults::kFrequency, hertz_of(profile_.run.sampling_interval_ns));
  for (const KnownCounter& known : kKnownCounters)
    if (known.name == name) t.add_uint32(pft::Defaults::kCounter, known.number);
  t.add_string(pft::Defaults::kName, name.data(), name.size());
  pbf_writer(perf_defaults).add_message(pft::Defaults::kTimebase, timebase);
  pbf_writer(defaults).add_message(pft::Defaults::kPerfSample, perf_defaults);
  return packets_.begin_sequence(sequence_, defaults);
}

Result<void> SampleSequence::write(const profile::Sample& sample) {
  using namespace pft::PerfSample;
  interned_.clear();
  const uint64_t callstack = intern_callstack(sample);
  sample_.clear();
  pbf_writer w(sample_);
  w.add_uint32(kCpu, sample.cpu);
  if (sample.thread.valid()) {
    const profile::Thread& thread = profile_.threads[sample.thread.index()];
    const int32_t pid =
        thread.process.valid() ? profile_.processes[thread.process.index()].pid : thread.tid;
    w.add_uint32(kPid, static_cast<uint32_t>(pid));
    w.add_uint32(kTid, static_cast<uint32_t>(thread.tid));
  }
  w.add_uint64(kCallstack, callstack);
  w.add_uint32(kCpuMode, sample.in_kernel ? kModeKernel : kModeUser);
  return packets_.put(sequence_, [&](pbf_writer& packet) {
    packet.add_uint64(pft::Packet::kTimestamp, sample.time_ns);
    if (!interned_.empty()) packet.add_message(pft::Packet::kInternedData, interned_);
    packet.add_message(pft::Packet::kPerfSample, sample_);
  });
}

uint64_t SampleSequence::intern_callstack(const profile::Sample& sample) {
  auto& known = analyze::is_cut(sample.end) ? cut_callstacks_ : callstacks_;
  uint64_t& iid = known[sample.site.valid() ? sample.site.index() : profile_.sites.size()];
  if (iid) return iid;
  std::vector<uint64_t> frames;
  for (const analyze::Frame& frame : walker_.frames(sample)) frames.push_back(intern_frame(frame));
  iid = next_callstack_++;
  row_.clear();
  pbf_writer w(row_);
  w.add_uint64(pft::Callstack::kIid, iid);
  for (uint64_t frame : frames) w.add_uint64(pft::Callstack::kFrameIds, frame);
  pbf_writer(interned_).add_message(pft::Interned::kCallstacks, row_);
  return iid;
}

uint64_t SampleSequence::intern_frame(const analyze::Frame& frame) {
  if (!frame.location.valid()) {
    uint64_t& iid = frame.name == profile::kTruncatedFrame ? truncated_frame_ : unknown_frame_;
    if (iid) return iid;
    const uint64_t name = intern_text(pft::Interned::kFunctionNames, frame.name);
    const uint64_t mapping = intern_mapping(static_cast<uint32_t>(mappings_.size()));
    iid = next_frame_++;
    row_.clear();
    pbf_writer w(row_);
    w.add_uint64(pft::Frame::kIid, iid);
    w.add_uint64(pft::Frame::kFunctionName, name);
    w.add_uint64(pft::Frame::kMapping, mapping);
    w.add_uint64(pft::Frame::kRelPc, iid);
    pbf_writer(interned_).add_message(pft::Interned::kFrames, row_);
    return iid;
  }
  // A location's frames are interned together, so their iids are neighbours.
  uint64_t& first = first_frames_[frame.location.index()];
  if (first) return first + frame.line;
  const AddressBook::Place place = book_.place(frame.location);
  const uint64_t mapping = intern_mapping(place.module);
  const uint16_t count = std::max<uint16_t>(profile_.locations[frame.location.index()].line_count, 1);
  first = next_frame_;
  for (uint16_t line = 0; line < count; ++line) {
    const analyze::Frame one = walker_.frame(frame.location, line);
    const uint64_t name = intern_text(pft::Interned::kFunctionNames, one.name);
    const uint64_t source = one.file.empty() ? 0 : intern_text(pft::Interned::kSourcePaths, one.file);
    row_.clear();
    pbf_writer w(row_);
    w.add_uint64(pft::Frame::kIid, next_frame_++);
    w.add_uint64(pft::Frame::kFunctionName, name);
    w.add_uint64(pft::Frame::kMapping, mapping);
    w.add_uint64(pft::Frame::kRelPc, relative_pc(frame.location));
    if (source) w.add_uint64(pft::Frame::kSourcePath, source);
    if (one.source_line) w.add_uint32(pft::Frame::kLine, one.source_line);
    w.add_uint32(pft::Frame::kKind, kind_number(one.kind));
    pbf_writer(interned_).add_message(pft::Interned::kFrames, row_);
  }
  return first + frame.line;
}

uint64_t SampleSequence::relative_pc(profile::LocationId location) const {
  const AddressBook::Place place = book_.place(location);
  const BookModule& module = book_.modules()[place.module];
  return place.address - module.start + module.file_offset;
}

// One past the book's modules stands for "[unknown]".
uint64_t SampleSequence::intern_mapping(uint32_t index) {
  const bool is_unknown = index >= mappings_.size();
  uint64_t& iid = is_unknown ? unknown_mapping_ : mappings_[index];
  if (iid) return iid;
  BookModule module;
  module.path = profile::kUnknownFrame;
  if (!is_unknown) module = book_.modules()[index];
  std::string_view path = module.path;
  while (path.starts_with('/')) path.remove_prefix(1);  // the importer puts one in front
  const uint64_t path_iid = intern_text(pft::Interned::kMappingPaths, path);
  const uint64_t build_id =
      module.build_id.empty() ? 0 : intern_text(pft::Interned::kBuildIds, bytes_of_hex(module.build_id));
  iid = next_mapping_++;
  row_.clear();
  pbf_writer w(row_);
  w.add_uint64(pft::Mapping::kIid, iid);
  if (build_id) w.add_uint64(pft::Mapping::kBuildId, build_id);
  w.add_uint64(pft::Mapping::kStart, module.start);
  w.add_uint64(pft::Mapping::kEnd, module.limit);
  w.add_uint64(pft::Mapping::kPath, path_iid);
  w.add_uint64(pft::Mapping::kExactOffset, module.file_offset);
  pbf_writer(interned_).add_message(pft::Interned::kMappings, row_);
  return iid;
}

uint64_t SampleSequence::intern_text(uint32_t field, std::string_view text) {
  Texts& texts = field == pft::Interned::kFunctionNames  ? functions_
                 : field == pft::Interned::kMappingPaths ? paths_
                 : field == pft::Interned::kSourcePaths  ? sources_
                                                         : build_ids_;
  const size_t before = texts.table.size();
  const uint64_t iid = texts.table.intern(text).index() + uint64_t{1};  // "" is 0 in the table, which is no iid
  if (texts.table.size() == before && !(text.empty() && !texts.has_empty)) return iid;
  texts.has_empty |= text.empty();
  row_.clear();
  pbf_writer w(row_);
  w.add_uint64(pft::Interned::kIid, iid);
  w.add_bytes(pft::Interned::kStr, text.data(), text.size());
  pbf_writer(interned_).add_message(field, row_);
  return iid;
}

}  // namespace cprof::format
