#include "pipeline/profile_namer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/file.h"
#include "pipeline/file_names.h"
#include "pipeline/kernel_names.h"
#include "profile/frame_name.h"

namespace cprof::pipeline {
namespace {

using profile::FrameKind;
using profile::Location;
using profile::Profile;

constexpr std::string_view kBootComment = "kernel addresses of boot ";
constexpr uint64_t kPage = 4096;

std::string boot_id() {
  auto text = read_text_file("/proc/sys/kernel/random/boot_id", 256);
  if (!text) return "";
  return text->substr(0, text->find('\n'));
}

bool notes_this_boot(const profile::RunInfo& run) {
  std::string boot = boot_id();
  return !boot.empty() && std::ranges::find(run.comments, std::string(kBootComment) + boot) != run.comments.end();
}

// A separate debug file keeps its segments' addresses, not their offsets: then only a mapping of the whole segment tells.
std::optional<uint64_t> bias_by_debug_file(const profile::Mapping& mapping, const object::ElfFile& debug) {
  for (const object::Segment& segment : debug.segments()) {
    if (!(segment.flags & PF_X)) continue;
    uint64_t start = segment.vaddr & ~(kPage - 1), end = (segment.vaddr + segment.memory_size + kPage - 1) & ~(kPage - 1);
    if (end - start == mapping.end - mapping.start) return mapping.start - start;
  }
  return std::nullopt;
}

struct FunctionHash {
  size_t operator()(const profile::Function& f) const {
    uint64_t hash = (uint64_t{f.name.value} << 32 | f.system_name.value) * 0x9e3779b97f4a7c15ull;
    return (hash ^ (uint64_t{f.file.value} << 32 | f.start_line)) * 0x9e3779b97f4a7c15ull >> 7;
  }
};
struct SameFunction {
  bool operator()(const profile::Function& a, const profile::Function& b) const {
    return a.name == b.name && a.system_name == b.system_name && a.file == b.file && a.start_line == b.start_line;
  }
};

class ProfileNamer {
 public:
  ProfileNamer(Profile& profile, const Options& options, const Provenance& provenance)
      : profile_(profile), options_(options), provenance_(provenance), sources_(options.sources), demangler_(options.demangle) {
    for (size_t i = 0; i < profile.functions.size(); i++) functions_.try_emplace(profile.functions[i], i);
  }

  std::optional<object::KernelSymbols> run();

 private:
  using Rows = std::vector<uint32_t>;  // of locations

  enum class Want : uint8_t { kNothing, kLines, kName };
  Want want(const Location& location) const;
  bool is_name_of_module(const Location& location, std::string_view name) const;
  void name_mapping(uint32_t mapping, Rows& rows);
  std::optional<uint64_t> bias_of(const profile::Mapping& mapping, const NamedFile& file) const;
  void set_bias(uint32_t mapping, const Rows& rows, uint64_t bias);
  void take(uint32_t row, const symbolize::Symbolized& found, std::string_view path);
  profile::FunctionId function(const profile::Function& function);
  void set_lines(Location& location, std::span<const symbolize::SourceLine> lines);
  void name_kernel(const Rows& rows, const object::KernelSymbols* symbols);
  std::optional<object::KernelSymbols> kernel_symbols();

  Profile& profile_;
  const Options& options_;
  const Provenance provenance_;
  FileSources sources_;
  symbolize::Demangler demangler_;
  std::unordered_map<profile::Function, size_t, FunctionHash, SameFunction> functions_;
};

std::optional<object::KernelSymbols> ProfileNamer::run() {
  std::vector<Rows> by_mapping(profile_.mappings.size());
  Rows kernel;
  for (uint32_t row = 0; row < profile_.locations.size(); row++) {
    const Location& location = profile_.locations[row];
    if (want(location) == Want::kNothing) continue;
    if (location.kind == FrameKind::kKernel) kernel.push_back(row);
    else if (location.mapping.valid()) by_mapping[location.mapping.index()].push_back(row);
    else if (location.address != 0) count_miss(profile_.diagnostics, symbolize::Miss::kNoMapping);
  }
  for (uint32_t mapping = 0; mapping < by_mapping.size(); mapping++)
    if (!by_mapping[mapping].empty()) name_mapping(mapping, by_mapping[mapping]);
  if (kernel.empty()) return std::nullopt;
  auto symbols = kernel_symbols();
  name_kernel(kernel, symbols ? &*symbols : nullptr);
  return symbols;
}

// "[libc.so.6]" is what the reader of perf script's text makes of code without a name.
bool ProfileNamer::is_name_of_module(const Location& location, std::string_view name) const {
  std::string_view path = profile_.text(profile_.mappings[location.mapping.index()].path);
  return name.size() > 2 && name.front() == '[' && name.substr(1, name.size() - 2) == profile::base_name(path);
}

ProfileNamer::Want ProfileNamer::want(const Location& location) const {
  bool has_code = location.address != 0 && (location.kind == FrameKind::kUser || location.kind == FrameKind::kKernel);
  if (!has_code) return Want::kNothing;
  auto lines = std::span(profile_.lines).subspan(location.first_line, location.line_count);
  if (lines.empty()) return Want::kName;
  if (lines.size() > 1 || lines[0].line != 0) return Want::kNothing;
  const profile::Function& function = profile_.functions[lines[0].function.index()];
  std::string_view name = profile_.text(function.name);
  bool is_unnamed = profile::is_stand_in(name) || (location.mapping.valid() && is_name_of_module(location, name));
  if (is_unnamed) return Want::kName;
  return location.kind == FrameKind::kUser && function.file == profile::kNoText ? Want::kLines : Want::kNothing;
}

void ProfileNamer::name_mapping(uint32_t mapping, Rows& rows) {
  const profile::Mapping& row = profile_.mappings[mapping];
  std::string path(profile_.text(row.path));
  Diagnostics& diagnostics = profile_.diagnostics;
  auto build_id = build_id_from_hex(profile_.text(row.build_id));
  bool is_file = path.starts_with('/') || path == "[vdso]";
  if (!is_file && build_id.empty()) return count_miss(diagnostics, symbolize::Miss::kNoFile, rows.size(), path);
  auto elf = sources_.open({path, build_id, provenance_.trust_paths, true}, diagnostics);
  NamedFile file{elf ? *elf : nullptr, nullptr, path, options_.inline_frames};
  if (file.elf) file.debug = sources_.debug_file(*file.elf, path, std::nullopt, diagnostics);
  if (!file.debug && !(file.elf && has_debug_info(*file.elf)))
    file.debug = sources_.fetch_debug_file(file.elf ? file.elf->build_id() : std::span<const std::byte>(build_id), path, diagnostics);
  if (!file.elf && !file.debug) {
    diagnostics.add("modules_unreadable", Severity::kNotice, "files that could not be opened: their frames got no names", 1,
                    elf.error().message);
    return count_miss(diagnostics, symbolize::Miss::kNoFile, rows.size(), path);
  }
  if (build_id.empty())
    diagnostics.add("modules_by_path_only", Severity::kNotice,
                    "files taken by their path alone: the profile does not tell their build-ids", 1, path);
  auto bias = bias_of(row, file);
  if (!bias) return count_miss(diagnostics, symbolize::Miss::kNoMapping, rows.size(), path);
  set_bias(mapping, rows, *bias);
  std::ranges::sort(rows, {}, [&](uint32_t r) { return profile_.locations[r].address; });
  std::vector<uint64_t> svmas;
  for (uint32_t r : rows) svmas.push_back(profile_.locations[r].call_address() - *bias);
  name_addresses(file, svmas, demangler_, diagnostics,
                 [&](size_t i, const symbolize::Symbolized& found) { take(rows[i], found, path); });
}

std::optional<uint64_t> ProfileNamer::bias_of(const profile::Mapping& mapping, const NamedFile& file) const {
  bool has_range = mapping.start < mapping.end;
  if (file.elf && file.elf->type() == ET_EXEC) return 0;
  if (!has_range) return std::nullopt;
  return file.elf ? file.elf->load_bias(mapping.start, mapping.file_offset) : bias_by_debug_file(mapping, *file.debug);
}

void ProfileNamer::set_bias(uint32_t mapping, const Rows& rows, uint64_t bias) {
  profile_.mappings[mapping].load_bias = bias;
  for (uint32_t row : rows) profile_.locations[row].file_address = profile_.locations[row].address - bias;
}

void ProfileNamer::take(uint32_t row, const symbolize::Symbolized& found, std::string_view path) {
  Location& location = profile_.locations[row];
  const bool only_lines = want(location) == Want::kLines;
  bool adds_lines = found.lines.size() > 1 || (!found.lines.empty() && !found.lines[0].file.empty());
  if (only_lines && !adds_lines) return;
  if (found.function_start) location.function_start = found.function_start;
  if (!found.lines.empty()) return set_lines(location, found.lines);
  count_miss(profile_.diagnostics, found.miss, 1, fmt::format("{}+{:#x}", path, location.file_address));
}

profile::FunctionId ProfileNamer::function(const profile::Function& function) {
  auto [known, is_new] = functions_.try_emplace(function, profile_.functions.size());
  if (is_new) profile_.functions.push_back(function);
  return profile::FunctionId(known->second);
}

void ProfileNamer::set_lines(Location& location, std::span<const symbolize::SourceLine> lines) {
  location.first_line = static_cast<uint32_t>(profile_.lines.size());
  location.line_count = static_cast<uint16_t>(lines.size());
  for (const symbolize::SourceLine& line : lines) {
    profile::Function row;
    row.name = profile_.strings.intern(line.name);
    row.system_name = profile_.strings.intern(line.system_name.empty() ? line.name : line.system_name);
    row.file = profile_.strings.intern(line.file);
    row.start_line = line.start_line;
    profile_.lines.push_back({function(row), line.line, line.column});
  }
  if (!location.mapping.valid()) return;
  profile::Mapping& mapping = profile_.mappings[location.mapping.index()];
  mapping.has_functions = true;
  mapping.has_inline_frames |= lines.size() > 1;
  for (const symbolize::SourceLine& line : lines) {
    mapping.has_filenames |= !line.file.empty();
    mapping.has_line_numbers |= line.line != 0;
  }
}

// None, and a notice, when there are none or they are not the profile's.
std::optional<object::KernelSymbols> ProfileNamer::kernel_symbols() {
  if (options_.kallsyms_given || provenance_.this_boot || notes_this_boot(profile_.run))
    return load_kernel_symbols(options_.kallsyms_path, profile_.diagnostics);
  note_foreign_kernel(profile_.diagnostics);
  return std::nullopt;
}

void ProfileNamer::name_kernel(const Rows& rows, const object::KernelSymbols* symbols) {
  for (uint32_t row : rows) {
    Location& location = profile_.locations[row];
    const bool is_mapped = location.mapping.valid();
    const std::string path(is_mapped ? profile_.text(profile_.mappings[location.mapping.index()].path) : std::string_view());
    auto found = kernel_name(symbols, location.call_address(), path);
    if (!found) continue;
    if (found->start) location.function_start = found->start;
    symbolize::SourceLine line;
    line.name = found->name;
    set_lines(location, {&line, 1});
  }
}

}  // namespace

std::optional<object::KernelSymbols> name_profile(Profile& profile, const Options& options, const Provenance& provenance) {
  return ProfileNamer(profile, options, provenance).run();
}

void note_boot(profile::RunInfo& run) {
  if (std::string boot = boot_id(); !boot.empty()) run.comments.push_back(std::string(kBootComment) + boot);
}

}  // namespace cprof::pipeline
