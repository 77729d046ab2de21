#include "pipeline/namer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

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
    if (origin.kind == CodeKind::kKernel && interner_.kernel_symbols()) name_kernel(id, *interner_.kernel_symbols());
    if (origin.kind == CodeKind::kJit) name_jit(id);
    if (origin.kind == CodeKind::kUnmapped)
      count_miss(diagnostics_, symbolize::Miss::kNoMapping);
  }
  for (auto& [file, locations] : by_file) {
    std::ranges::sort(locations, {}, [&](auto id) { return builder_.profile().locations[id.index()].file_address; });
    name_file(*file, locations);
  }
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

void Namer::name_kernel(profile::LocationId id, const object::KernelSymbols& symbols) {
  const profile::Location& location = builder_.profile().locations[id.index()];
  if (auto found = kernel_name(symbols, location.call_file_address())) set_name(id, found->name, found->start);
}

void Namer::name_jit(profile::LocationId id) {
  const profile::Location& location = builder_.profile().locations[id.index()];
  int32_t pid = interner_.origin(id).pid;
  auto entry = modules_.surroundings().same_machine ? interner_.jit_names().find(pid, location.call_file_address()) : std::nullopt;
  if (!entry) {
    diagnostics_.add("unnamed_jit", Severity::kNotice,
                     "frames without a name in generated code: start the program with its perf-map option "
                     "(node --perf-basic-prof or --perf-prof, python -X perf, java with a perf-map agent)");
    return;
  }
  const std::string source = entry->is_from_dump ? fmt::format("jit-{}.dump", pid) : fmt::format("/tmp/perf-{}.map", pid);
  builder_.profile().mappings[location.mapping.index()].path = builder_.intern(source);
  set_name(id, demangler_.demangle(entry->name), entry->start, entry->file, entry->line);
}

}  // namespace cprof::pipeline
