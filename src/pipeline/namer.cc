#include "pipeline/namer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "pipeline/code_by_time.h"
#include "pipeline/file_names.h"
#include "pipeline/kernel_names.h"

namespace cprof::pipeline {

Namer::Namer(const Options& options, profile::ProfileBuilder& builder, Modules& modules, StackInterner& interner,
             Diagnostics& diagnostics)
    : options_(options), builder_(builder), modules_(modules), interner_(interner), diagnostics_(diagnostics),
      demangler_(options.demangle) {}

Namer::~Namer() = default;

void Namer::name_all() {
  // In the order of first use, never of pointers: two runs over the same events must give the same profile.
  std::vector<std::pair<ModuleFile*, std::vector<profile::LocationId>>> by_file;
  std::unordered_map<ModuleFile*, size_t> group_of;
  for (size_t i = 0; i < builder_.profile().locations.size(); i++) {
    profile::LocationId id(i);
    const LocationOrigin& origin = interner_.origin(id);
    if (origin.kind == CodeKind::kFile) {
      auto [it, is_new] = group_of.try_emplace(origin.file, by_file.size());
      if (is_new) by_file.emplace_back(origin.file, std::vector<profile::LocationId>());
      by_file[it->second].second.push_back(id);
    }
    if (origin.kind == CodeKind::kKernel) name_kernel(id);
    if (origin.kind == CodeKind::kJit) name_jit(id);
    if (origin.kind == CodeKind::kUnmapped)
      count_miss(diagnostics_, symbolize::Miss::kNoMapping);
  }
  for (auto& [file, locations] : by_file) {
    std::ranges::sort(locations, {}, [&](auto id) { return builder_.profile().locations[id.index()].file_address; });
    name_file(*file, locations);
  }
  if (!changing_.empty())
    place_by_time(builder_, changing_, [this](profile::LocationId id, uint64_t time_ns) { return jit_location_at(id, time_ns); });
  interner_.jit_names().report(diagnostics_);
}

void Namer::name_file(ModuleFile& file, std::span<const profile::LocationId> locations) {
  if (!file.elf && !open_late(file, locations)) return count_miss(diagnostics_, symbolize::Miss::kNoFile, locations.size(), file.path);
  modules_.debug_file(file);
  modules_.fetch_debug_file(file);
  std::vector<uint64_t> svmas;
  for (profile::LocationId id : locations) svmas.push_back(builder_.profile().locations[id.index()].call_file_address());
  name_addresses({file.elf, file.debug, file.path, options_.inline_frames}, svmas, demangler_, diagnostics_,
                 [&](size_t i, const symbolize::Symbolized& found) { name_location(file, locations[i], found); });
}

// A file that was gone when its code ran: until now its addresses were offsets in the file.
bool Namer::open_late(ModuleFile& file, std::span<const profile::LocationId> locations) {
  if (!modules_.open_elsewhere(file)) return false;
  profile::Profile& profile = builder_.profile();
  for (profile::LocationId id : locations) {
    profile::Location& location = profile.locations[id.index()];
    uint64_t offset = location.call_file_address();
    auto svma = file.elf->file_offset_to_svma(offset);
    location.file_address = svma.value_or(offset) + (location.is_return_address ? 1 : 0);
    profile.mappings[location.mapping.index()].load_bias = location.address - location.file_address;
  }
  return true;
}

void Namer::name_location(const ModuleFile& file, profile::LocationId id, const symbolize::Symbolized& found) {
  profile::Location& location = builder_.profile().locations[id.index()];
  location.function_start = found.function_start;
  if (!location.function_start && file.table)
    if (auto range = file.table->function_range(location.call_file_address())) location.function_start = range->first;
  if (!found.lines.empty()) return set_lines(id, found);
  count_miss(diagnostics_, found.miss, 1, fmt::format("{}+{:#x}", file.path, location.file_address));
}

void Namer::set_lines(profile::LocationId id, const symbolize::Symbolized& symbolized) {
  lines_.clear();
  profile::Mapping& mapping = builder_.profile().mappings[builder_.profile().locations[id.index()].mapping.index()];
  mapping.has_functions = true;
  if (symbolized.lines.size() > 1) mapping.has_inline_frames = true;
  for (const symbolize::SourceLine& line : symbolized.lines) {
    profile::Function function;
    function.name = builder_.intern(line.name);
    function.system_name = builder_.intern(line.system_name.empty() ? line.name : line.system_name);
    function.file = builder_.intern(line.file);
    function.start_line = line.start_line;
    if (!line.file.empty()) mapping.has_filenames = true;
    if (line.line) mapping.has_line_numbers = true;
    lines_.push_back({builder_.function(function), line.line, line.column});
  }
  builder_.set_lines(id, lines_);
}

void Namer::set_name(profile::LocationId id, std::string_view name, uint64_t function_start, std::string_view file, uint32_t line_number) {
  profile::Location& location = builder_.profile().locations[id.index()];
  location.function_start = function_start;
  if (location.mapping.valid()) builder_.profile().mappings[location.mapping.index()].has_functions = true;
  profile::Function function;
  function.name = function.system_name = builder_.intern(name);
  function.file = builder_.intern(file);
  if (location.mapping.valid()) {
    profile::Mapping& mapping = builder_.profile().mappings[location.mapping.index()];
    mapping.has_filenames |= !file.empty();
    mapping.has_line_numbers |= line_number != 0;
  }
  profile::Line line{builder_.function(function), line_number};
  builder_.set_lines(id, {&line, 1});
}

void Namer::name_kernel(profile::LocationId id) {
  const profile::Profile& profile = builder_.profile();
  const profile::Location& location = profile.locations[id.index()];
  const std::string path(profile.text(profile.mappings[location.mapping.index()].path));
  if (auto found = kernel_name(interner_.kernel_symbols(), location.call_file_address(), path))
    set_name(id, found->name, found->start ? found->start : location.function_start);
}

void Namer::name_jit(profile::LocationId id) {
  const profile::Location& location = builder_.profile().locations[id.index()];
  const int32_t pid = interner_.origin(id).pid;
  const Surroundings& here = modules_.surroundings();
  if (!here.same_machine) return note_unnamed_jit();
  const uint64_t address = location.call_file_address();
  if (here.same_clock && interner_.jit_names().changes(pid, address)) changing_.push_back(id);
  const auto entry = interner_.jit_names().find(pid, address);
  if (entry) return set_jit_name(id, pid, *entry);
  if (changing_.empty() || changing_.back() != id) note_unnamed_jit();
}

void Namer::note_unnamed_jit() {
  diagnostics_.add("unnamed_jit", Severity::kNotice,
                   "frames without a name in generated code: start the program with its perf-map option "
                   "(node --perf-basic-prof or --perf-prof, python -X perf, java with a perf-map agent)");
}

void Namer::set_jit_name(profile::LocationId id, int32_t pid, const JitNames::Name& name) {
  const std::string source = name.is_from_dump ? fmt::format("jit-{}.dump", pid) : fmt::format("/tmp/perf-{}.map", pid);
  builder_.profile().mappings[builder_.profile().locations[id.index()].mapping.index()].path = builder_.intern(source);
  set_name(id, demangler_.demangle(name.name), name.start, name.file, name.line);
}

// A row for each code that lay there before the last.
profile::LocationId Namer::jit_location_at(profile::LocationId id, uint64_t time_ns) {
  constexpr uint32_t kNothing = 0xffffffff, kOfMap = 0xfffffffe;
  auto code_of = [](const std::optional<JitNames::Name>& name) { return !name ? kNothing : name->is_from_dump ? name->code : kOfMap; };
  const profile::Location location = builder_.profile().locations[id.index()];
  const int32_t pid = interner_.origin(id).pid;
  JitNames& names = interner_.jit_names();
  const uint32_t last = code_of(names.find(pid, location.call_file_address()));
  const auto then = names.find(pid, location.call_file_address(), time_ns);
  auto [it, is_new] = earlier_.try_emplace({id.value, code_of(then)}, id);
  if (!is_new) return it->second;
  if (!then) note_unnamed_jit();
  if (code_of(then) == last) return id;
  it->second = builder_.add_location(location, {});
  if (then) set_jit_name(it->second, pid, *then);
  return it->second;
}

}  // namespace cprof::pipeline
