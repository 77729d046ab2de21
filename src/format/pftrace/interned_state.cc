#include "format/pftrace/interned_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "format/address_book.h"
#include "format/frame_text.h"
#include "format/pftrace/pftrace_fields.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

using profile::CallSiteId;
using profile::FrameKind;
using profile::LocationId;

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (char c : bytes) fmt::format_to(std::back_inserter(hex), "{:02x}", static_cast<unsigned char>(c));
  return hex;
}

FrameKind kind_of(uint32_t number, std::string_view module) {
  switch (number) {
    case pft::Frame::kKernel: return FrameKind::kKernel;
    case pft::Frame::kInterpreted: return FrameKind::kInterpreted;
    case pft::Frame::kJit: return FrameKind::kJit;
    case pft::Frame::kNative: return FrameKind::kUser;
    default: return kind_of_module(module);
  }
}

template <typename Map, typename Value>
void define(Map& map, uint64_t iid, Value&& value) {
  if (iid != 0) map.try_emplace(iid, std::forward<Value>(value));
}

}  // namespace

LocationId TraceLocations::location(const Key& key) {
  auto [it, is_new] = locations_.try_emplace(key);
  if (!is_new) return it->second;
  std::vector<profile::Line> lines;
  for (const auto& [function, line] : key.lines) lines.push_back({function, line, 0});
  const auto& mappings = builder_.profile().mappings;
  if (key.address == 0 || key.address >= kMadeUpAddress || !key.mapping.valid())
    return it->second = builder_.named_location(key.mapping, key.kind, lines);
  const profile::Mapping& mapping = mappings[key.mapping.index()];
  profile::Location location{.mapping = key.mapping, .address = key.address, .file_address = key.address, .kind = key.kind};
  if (mapping.start && key.address >= mapping.file_offset) location.address = mapping.start + (key.address - mapping.file_offset);
  it->second = builder_.add_location(location, {});
  if (!lines.empty()) builder_.set_lines(it->second, lines);
  return it->second;
}

void InternedState::clear() {
  texts_.clear();
  mappings_.clear();
  frames_.clear();
  callstacks_.clear();
  tasks_.clear();
  executions_.clear();
  counters_.clear();
}

void InternedState::add(ProtoFields interned) {
  while (interned.next()) {
    const uint32_t field = interned.tag();
    if (interned.wire_type() != protozero::pbf_wire_type::length_delimited) {
      interned.skip();
      continue;
    }
    uint64_t iid = 0;
    switch (field) {
      case pft::Interned::kCategories:
      case pft::Interned::kEventNames:
      case pft::Interned::kAnnotationNames:
      case pft::Interned::kAnnotationStrings:
      case pft::Interned::kFunctionNames:
      case pft::Interned::kBuildIds:
      case pft::Interned::kMappingPaths:
      case pft::Interned::kSourcePaths: add_text(field, interned.get_message()); break;
      case pft::Interned::kMappings: add_mapping(interned.get_message()); break;
      case pft::Interned::kFrames: add_frame(interned.get_message()); break;
      case pft::Interned::kCallstacks: add_callstack(interned.get_message()); break;
      case pft::Interned::kTasks: {
        const SampleTask task = read_task(interned.get_message(), iid);
        define(tasks_, iid, task);
        break;
      }
      case pft::Interned::kExecutions: {
        const SampleExecution execution = read_execution(interned.get_message(), iid);
        define(executions_, iid, execution);
        break;
      }
      case pft::Interned::kCounters: {
        StringId name = profile::kNoText;
        for (ProtoFields c = interned.get_message(); c.next();) {
          if (c.tag() == pft::Interned::kIid) iid = c.get_uint64();
          else if (c.tag() == pft::StackSample::kName) name = locations_.builder().intern(c.get_text());
          else c.skip();
        }
        define(counters_, iid, name);
        break;
      }
      default: interned.skip();
    }
  }
}

void InternedState::add_text(uint32_t field, ProtoFields fields) {
  uint64_t iid = 0;
  std::string_view text;
  while (fields.next()) {
    if (fields.tag() == pft::Interned::kIid) iid = fields.get_uint64();
    else if (fields.tag() == pft::Interned::kStr) text = fields.get_text();
    else fields.skip();
  }
  const bool is_build_id = field == pft::Interned::kBuildIds;
  if (iid) texts_[field].try_emplace(iid, locations_.builder().intern(is_build_id ? hex_of(text) : std::string(text)));
}

void InternedState::add_mapping(ProtoFields fields) {
  uint64_t iid = 0;
  Mapping row;
  while (fields.next()) {
    switch (fields.tag()) {
      case pft::Mapping::kIid: iid = fields.get_uint64(); break;
      case pft::Mapping::kBuildId: row.build_id = fields.get_uint64(); break;
      case pft::Mapping::kStart: row.start = fields.get_uint64(); break;
      case pft::Mapping::kEnd: row.end = fields.get_uint64(); break;
      case pft::Mapping::kLoadBias: row.load_bias = fields.get_uint64(); break;
      case pft::Mapping::kExactOffset: row.exact_offset = fields.get_uint64(); break;
      case pft::Mapping::kPath:
        fields.for_each_uint64([&](uint64_t part) { row.path.push_back(part); });
        break;
      default: fields.skip();
    }
  }
  define(mappings_, iid, std::move(row));
}

void InternedState::add_frame(ProtoFields fields) {
  uint64_t iid = 0;
  Frame row;
  while (fields.next()) {
    switch (fields.tag()) {
      case pft::Frame::kIid: iid = fields.get_uint64(); break;
      case pft::Frame::kFunctionName: row.name = fields.get_uint64(); break;
      case pft::Frame::kMapping: row.mapping = fields.get_uint64(); break;
      case pft::Frame::kRelPc: row.rel_pc = fields.get_uint64(); break;
      case pft::Frame::kSourcePath: row.source = fields.get_uint64(); break;
      case pft::Frame::kLine: row.line = fields.get_uint32(); break;
      case pft::Frame::kKind: row.kind = fields.get_uint32(); break;
      default: fields.skip();
    }
  }
  define(frames_, iid, row);
}

void InternedState::add_callstack(ProtoFields fields) {
  uint64_t iid = 0;
  Callstack row;
  while (fields.next()) {
    if (fields.tag() == pft::Callstack::kIid) iid = fields.get_uint64();
    else if (fields.tag() == pft::Callstack::kFrameIds) fields.for_each_uint64([&](uint64_t id) { row.frames.push_back(id); });
    else fields.skip();
  }
  define(callstacks_, iid, std::move(row));
}

SampleTask InternedState::read_task(ProtoFields fields, uint64_t& iid) {
  SampleTask task;
  while (fields.next()) {
    switch (fields.tag()) {
      case pft::Interned::kIid: iid = fields.get_uint64(); break;
      case pft::StackSample::kPid: task.pid = fields.get_int32(); break;
      case pft::StackSample::kTid: task.tid = fields.get_int32(); break;
      default: fields.skip();
    }
  }
  return task;
}

SampleExecution InternedState::read_execution(ProtoFields fields, uint64_t& iid) {
  SampleExecution execution;
  while (fields.next()) {
    switch (fields.tag()) {
      case pft::Interned::kIid: iid = fields.get_uint64(); break;
      case pft::StackSample::kCpu: execution.cpu = fields.get_uint32(); break;
      case pft::StackSample::kMode: execution.in_kernel = fields.get_uint32() == pft::StackSample::kModeKernel; break;
      default: fields.skip();
    }
  }
  return execution;
}

std::optional<StringId> InternedState::text(uint32_t field, uint64_t iid) const {
  const auto texts = texts_.find(field);
  if (texts == texts_.end()) return std::nullopt;
  const auto found = texts->second.find(iid);
  return found == texts->second.end() ? std::nullopt : std::optional(found->second);
}

SampleTask InternedState::task(uint64_t iid) const {
  const auto found = tasks_.find(iid);
  return found == tasks_.end() ? SampleTask{} : found->second;
}

SampleExecution InternedState::execution(uint64_t iid) const {
  const auto found = executions_.find(iid);
  return found == executions_.end() ? SampleExecution{} : found->second;
}

StringId InternedState::counter(uint64_t iid) const {
  const auto found = counters_.find(iid);
  return found == counters_.end() ? profile::kNoText : found->second;
}

// A path is written as its components, without the slash that it begins with.
const InternedState::Mapping* InternedState::mapping(uint64_t iid) {
  const auto found = mappings_.find(iid);
  if (found == mappings_.end()) return nullptr;
  Mapping& mapping = found->second;
  if (mapping.is_made) return &mapping;
  mapping.is_made = true;
  const auto& strings = locations_.builder().profile().strings;
  std::string path;
  for (uint64_t part : mapping.path) {
    const auto name = text(pft::Interned::kMappingPaths, part);
    if (!name || strings[*name].empty()) continue;
    if (!path.empty()) path += '/';
    path += strings[*name];
  }
  const bool is_path = path.find('/') != path.npos && !path.starts_with('/') && !path.starts_with('[');
  if (is_path) path = std::string("/").append(path);
  mapping.is_made_up = path.empty() || is_made_up_module(path);
  if (mapping.is_made_up) return &mapping;
  mapping.made = locations_.builder().mapping(
      {.path = locations_.builder().intern(path),
       .build_id = text(pft::Interned::kBuildIds, mapping.build_id).value_or(profile::kNoText),
       .start = mapping.start,
       .end = mapping.end,
       .file_offset = mapping.exact_offset,
       .load_bias = mapping.load_bias});
  return &mapping;
}

std::string_view InternedState::name_of(const Frame& frame) const {
  const auto name = text(pft::Interned::kFunctionNames, frame.name);
  return name ? locations_.builder().profile().text(*name) : std::string_view();
}

TraceStack InternedState::stack(uint64_t iid) {
  const auto found = callstacks_.find(iid);
  if (found == callstacks_.end()) return {.is_broken = true};
  Callstack& callstack = found->second;
  if (!callstack.is_made) callstack.made = make_stack(callstack.frames);
  callstack.is_made = true;
  return callstack.made;
}

// Neighbours at one address are one place with what is inlined there; the same function again is a second call of it.
TraceStack InternedState::make_stack(const std::vector<uint64_t>& iids) {
  TraceStack made;
  std::vector<const Frame*> frames;
  for (uint64_t iid : iids) {
    const auto found = frames_.find(iid);
    if (found == frames_.end()) return {.is_broken = true};
    frames.push_back(&found->second);
  }
  std::span<const Frame* const> left(frames);
  if (!left.empty() && name_of(*left[0]) == profile::kTruncatedFrame) {
    made.is_cut = true;
    left = left.subspan(1);
  }
  if (left.size() == 1 && name_of(*left[0]) == profile::kUnknownFrame) return made;
  std::vector<LocationId> locations;
  while (!left.empty()) {
    size_t count = 1;
    while (count < left.size() && left[0]->rel_pc != 0 && left[count]->rel_pc == left[0]->rel_pc &&
           left[count]->mapping == left[0]->mapping && left[count]->name != left[0]->name)
      ++count;
    locations.push_back(make_location(left.first(count)));
    left = left.subspan(count);
  }
  made.site = locations_.builder().stack(locations);
  return made;
}

LocationId InternedState::make_location(std::span<const Frame* const> outermost_first) {
  auto& builder = locations_.builder();
  const Frame& outermost = *outermost_first[0];
  const Mapping* mapped = mapping(outermost.mapping);
  TraceLocations::Key key;
  std::string_view module;
  if (mapped && !mapped->is_made_up) {
    key.mapping = mapped->made;
    key.address = outermost.rel_pc;
    module = builder.profile().text(builder.profile().mappings[mapped->made.index()].path);
  }
  key.kind = kind_of(outermost.kind, module);
  for (size_t i = outermost_first.size(); i-- > 0;) {
    const Frame& frame = *outermost_first[i];
    auto name = text(pft::Interned::kFunctionNames, frame.name);
    const bool is_unnamed = !name || *name == profile::kNoText;
    if (is_unnamed && key.mapping.valid() && key.address != 0 && outermost_first.size() == 1) break;
    if (is_unnamed) name = builder.intern(profile::kUnknownFrame);
    const StringId file = text(pft::Interned::kSourcePaths, frame.source).value_or(profile::kNoText);
    key.lines.emplace_back(builder.function({.name = *name, .system_name = *name, .file = file}), frame.line);
  }
  return locations_.location(key);
}

TraceStack InternedState::inline_stack(ProtoFields callstack) {
  auto& builder = locations_.builder();
  std::vector<LocationId> locations;
  while (callstack.next()) {
    if (callstack.tag() != pft::StackSample::kFrames) {
      callstack.skip();
      continue;
    }
    profile::Function function;
    uint32_t line_number = 0;
    for (ProtoFields f = callstack.get_message(); f.next();) {
      switch (f.tag()) {
        case pft::StackSample::kFrameName: function.name = builder.intern(f.get_text()); break;
        case pft::StackSample::kFrameFile: function.file = builder.intern(f.get_text()); break;
        case pft::StackSample::kFrameLine: line_number = f.get_uint32(); break;
        default: f.skip();
      }
    }
    if (function.name == profile::kNoText) function.name = builder.intern(profile::kUnknownFrame);
    function.system_name = function.name;
    const profile::Line line{builder.function(function), line_number, 0};
    locations.push_back(builder.named_location({}, FrameKind::kUser, {&line, 1}));
  }
  return {.site = builder.stack(locations)};
}

}  // namespace cprof::format
