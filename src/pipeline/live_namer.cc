#include "pipeline/live_namer.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "object/process_files.h"
#include "pipeline/file_names.h"
#include "pipeline/generated_code.h"
#include "pipeline/kernel_names.h"

namespace cprof::pipeline {
namespace {

using profile::FrameKind;
using profile::Profile;

constexpr unsigned kMostTries = 3;

// Every member, or this does not compile.
Profile copy_of(const Profile& from) {
  Profile to;
  const auto& [run, strings, processes, threads, mappings, functions, lines, locations, sites, metrics, labels, label_sets, samples,
               aggregates, on_cpu, off_cpu, breaks, tracks, slices, marks, counters, diagnostics] = from;
  for (size_t i = 0; i < strings.size(); i++) to.strings.intern(strings[StringId(i)]);  // in order: the same numbers
  to.run = run;
  to.processes = processes, to.threads = threads, to.mappings = mappings, to.functions = functions, to.lines = lines;
  to.locations = locations, to.sites = sites, to.metrics = metrics, to.labels = labels, to.label_sets = label_sets;
  to.samples = samples, to.aggregates = aggregates, to.on_cpu = on_cpu, to.off_cpu = off_cpu, to.breaks = breaks;
  to.tracks = tracks, to.slices = slices, to.marks = marks, to.counters = counters, to.diagnostics = diagnostics;
  return to;
}

// By location: a process whose samples show it.
std::vector<int32_t> pids_of_locations(const Profile& profile) {
  std::vector<int32_t> pids(profile.locations.size());
  std::vector<bool> is_seen(profile.sites.size());
  for (const profile::Sample& sample : profile.samples) {
    const int32_t pid = profile.processes[profile.threads[sample.thread.index()].process.index()].pid;
    for (profile::CallSiteId site = sample.site; site.valid() && !is_seen[site.index()]; site = profile.sites[site.index()].parent) {
      is_seen[site.index()] = true;
      int32_t& known = pids[profile.sites[site.index()].location.index()];
      if (known == 0) known = pid;
    }
  }
  return pids;
}

// The file as that process has it mapped.
std::shared_ptr<object::ElfFile> open_through(int32_t pid, const std::string& path, std::span<const std::byte> build_id) {
  const auto maps = object::read_maps(pid);
  if (!maps) return nullptr;
  const auto entry = std::ranges::find_if(*maps, [&](const object::MapsEntry& e) { return e.executable && e.path == path; });
  if (entry == maps->end()) return nullptr;
  const object::FileIdentity identity{entry->major, entry->minor, entry->inode, {build_id.begin(), build_id.end()}};
  auto fd = object::open_mapped_file(pid, entry->start, entry->end, path, identity);
  auto elf = fd ? object::ElfFile::open(std::move(*fd), path) : Result<std::shared_ptr<object::ElfFile>>(nullptr);
  return elf ? *elf : nullptr;
}

}  // namespace

// The functions of the profile that is named, so that equal ones are one row.
class LiveNamer::Copy {
 public:
  Copy(Profile& profile, const StringTable& texts) : profile_(profile), texts_(texts) {}

  void set(profile::Location& location, const Named& named) {
    location.function_start = named.function_start;
    if (named.lines.empty()) return;
    location.first_line = static_cast<uint32_t>(profile_.lines.size());
    location.line_count = static_cast<uint16_t>(std::min<size_t>(named.lines.size(), UINT16_MAX));
    for (const Line& line : std::span(named.lines).first(location.line_count))
      profile_.lines.push_back({function(line), line.line, line.column});
    if (location.mapping.valid()) profile_.mappings[location.mapping.index()].has_functions = true;
  }

 private:
  profile::FunctionId function(const Line& line) {
    const auto key = std::tuple(line.name.value, line.system_name.value, line.file.value, line.start_line);
    auto [it, is_new] = functions_.try_emplace(key, profile_.functions.size());
    if (!is_new) return profile::FunctionId(it->second);
    auto text = [&](StringId id) { return profile_.strings.intern(texts_[id]); };
    profile_.functions.push_back(
        {.name = text(line.name), .system_name = text(line.system_name), .file = text(line.file), .start_line = line.start_line});
    return profile::FunctionId(it->second);
  }

  Profile& profile_;
  const StringTable& texts_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, size_t> functions_;
};

LiveNamer::Named LiveNamer::remember(const symbolize::Symbolized& found) {
  Named named{.lines = {}, .function_start = found.function_start};
  for (const symbolize::SourceLine& line : found.lines)
    named.lines.push_back({texts_.intern(line.name), texts_.intern(line.system_name.empty() ? line.name : line.system_name),
                           texts_.intern(line.file), line.line, line.column, line.start_line});
  return named;
}

LiveNamer::Named LiveNamer::one_line(std::string_view name, uint64_t function_start) {
  const StringId text = texts_.intern(name);
  return {.lines = {{text, text, none_, 0, 0, 0}}, .function_start = function_start};
}

LiveNamer::File& LiveNamer::file_of(const Profile& profile, const profile::Mapping& mapping) {
  std::string key(profile.text(mapping.path));
  key += '\n';
  key += profile.text(mapping.build_id);
  return files_[key];
}

void LiveNamer::open(File& file, const Profile& profile, const profile::Mapping& mapping, int32_t pid) {
  file.tries++;
  file.path = profile.text(mapping.path);
  const auto build_id = build_id_from_hex(profile.text(mapping.build_id));
  if (file.path == "[vdso]") {
    if (auto vdso = open_own_vdso(build_id, true)) file.elf = std::move(*vdso);
  } else if (file.path.starts_with('/')) {
    file.elf = open_through(pid, file.path, build_id);
    if (!file.elf)  // the process is gone: what lies at its path now must prove that it is the same
      if (auto other = sources_.open({file.path, build_id, false, false}, ignored_)) file.elf = std::move(*other);
  }
  if (!file.elf) return;
  file.debug = sources_.debug_file(*file.elf, file.path, pid, ignored_);
  file.symbols = std::make_unique<symbolize::ModuleSymbols>(file.elf, file.debug, demangler_, options_.inline_frames);
}

void LiveNamer::learn(File& file, std::vector<uint64_t>& svmas) {
  std::ranges::sort(svmas);
  for (uint64_t svma : svmas) file.by_address.try_emplace(svma);
  name_addresses(*file.symbols, {file.elf, file.debug, file.path, options_.inline_frames}, svmas, ignored_,
                 [&](size_t i, const symbolize::Symbolized& found) { file.by_address[svmas[i]] = remember(found); });
}

void LiveNamer::learn_files(const Profile& profile, const std::vector<int32_t>& pids) {
  std::map<File*, std::vector<uint64_t>> unknown;
  for (size_t i = 0; i < profile.locations.size(); i++) {
    const profile::Location& location = profile.locations[i];
    if (location.kind != FrameKind::kUser || !location.mapping.valid()) continue;
    const profile::Mapping& mapping = profile.mappings[location.mapping.index()];
    File& file = file_of(profile, mapping);
    const uint64_t svma = location.call_file_address();
    if (file.by_address.contains(svma)) continue;
    if (!file.elf && file.tries < kMostTries) open(file, profile, mapping, pids[i]);
    if (file.elf) unknown[&file].push_back(svma);
  }
  for (auto& [file, svmas] : unknown) learn(*file, svmas);
}

const LiveNamer::Named* LiveNamer::find_kernel(uint64_t address) {
  if (!std::exchange(are_kernel_symbols_tried_, true)) kernel_symbols_ = load_kernel_symbols(options_.kallsyms_path, ignored_);
  if (!kernel_symbols_) return nullptr;
  auto [it, is_new] = kernel_.try_emplace(address);
  if (is_new)
    if (auto found = kernel_name(&*kernel_symbols_, address, {})) it->second = one_line(found->name, found->start);
  return &it->second;
}

// Null: it has no name, for now.
const LiveNamer::Named* LiveNamer::find(const Profile& profile, const profile::Location& location, int32_t pid) {
  const uint64_t address = location.call_file_address();
  const std::string_view path = location.mapping.valid() ? profile.text(profile.mappings[location.mapping.index()].path) : std::string_view();
  if (location.kind == FrameKind::kKernel && !is_generated_path(path)) return find_kernel(address);
  if (location.kind == FrameKind::kKernel) {
    made_ = one_line(kernel_name(nullptr, address, path)->name, location.function_start);
    return &made_;
  }
  if (location.kind == FrameKind::kJit) {
    const auto entry = jit_names_.find(pid, address);
    if (!entry) return nullptr;
    made_ = one_line(demangler_.demangle(entry->name), entry->start);
    made_.lines[0].file = texts_.intern(entry->file);
    made_.lines[0].line = entry->line;
    return &made_;
  }
  if (location.kind != FrameKind::kUser || !location.mapping.valid()) return nullptr;
  File& file = file_of(profile, profile.mappings[location.mapping.index()]);
  const auto known = file.by_address.find(address);
  return known == file.by_address.end() ? nullptr : &known->second;
}

profile::Profile LiveNamer::name(const Profile& so_far) {
  Profile copy = copy_of(so_far);
  const std::vector<int32_t> pids = pids_of_locations(copy);
  jit_names_.begin_round();
  learn_files(copy, pids);
  Copy rows(copy, texts_);
  for (size_t i = 0; i < copy.locations.size(); i++)
    if (const Named* named = find(copy, copy.locations[i], pids[i])) rows.set(copy.locations[i], *named);
  copy.run.is_unfinished = false;
  return copy;
}

}  // namespace cprof::pipeline
