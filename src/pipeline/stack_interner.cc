#include "pipeline/stack_interner.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "pipeline/kernel_names.h"
#include "profile/frame_name.h"

namespace cprof::pipeline {
namespace {

uint64_t key_of(uint64_t pc, bool is_return) { return pc << 1 | (is_return ? 1 : 0); }

template <typename Make>
profile::LocationId find_or_make(profile::PairIndex& index, uint64_t key, Make&& make) {
  return profile::LocationId(index.find_or_add(static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key), [&] { return make().value; }));
}

void widen(profile::Mapping& mapping, uint64_t start, uint64_t end) {
  mapping.start = std::min(mapping.start, start);
  mapping.end = std::max(mapping.end, end);
}

}  // namespace

StackInterner::StackInterner(profile::ProfileBuilder& builder, Modules& modules, const Options& options,
                             const space::AddressMap& kernel_map, Diagnostics& diagnostics)
    : builder_(builder), modules_(modules), diagnostics_(diagnostics), options_(options), kernel_map_(kernel_map) {}

profile::CallSiteId StackInterner::intern(const space::Process& process, StackCache& cache,
                                          std::span<const unwind::Frame> user, std::span<const uint64_t> kernel) {
  if (cache.process_serial != process.serial || cache.map_version != process.maps.version() ||
      cache.generated_version != generated_version_)
    cache = {process.serial, process.maps.version(), generated_version_, {}, {}};
  new_keys_.clear();
  for (size_t i = user.size(); i-- > 0;) new_keys_.push_back(key_of(user[i].pc, user[i].is_return_address));
  for (size_t i = kernel.size(); i-- > 0;) new_keys_.push_back(key_of(kernel[i], i != 0));

  size_t same = 0;
  while (same < new_keys_.size() && same < cache.keys.size() && new_keys_[same] == cache.keys[same]) same++;
  cache.keys.resize(same);
  cache.sites.resize(same);
  profile::CallSiteId site = same ? cache.sites.back() : profile::CallSiteId();
  for (size_t i = same; i < new_keys_.size(); i++) {
    bool is_user = i < user.size();
    profile::LocationId location =
        is_user ? user_location(process, user[user.size() - 1 - i])
                : kernel_location(kernel[new_keys_.size() - 1 - i], i + 1 != new_keys_.size());
    site = builder_.site(site, location);
    cache.keys.push_back(new_keys_[i]);
    cache.sites.push_back(site);
  }
  return site;
}

void StackInterner::renumber(const profile::Renumbering& map) {
  std::vector<LocationOrigin> origins(builder_.profile().locations.size());
  for (size_t i = 0; i < map.locations.size(); i++)
    if (map.locations[i].valid()) origins[map.locations[i].index()] = origins_[i];
  origins_ = std::move(origins);
  processes_.clear();  // the builder finds the rows that are left
  kernel_locations_ = {};
  profile::renumber(mappings_, map.mappings);
}

profile::LocationId StackInterner::user_location(const space::Process& process, const unwind::Frame& frame) {
  ProcessLocations& known = processes_[process.serial];
  if (known.map_version != process.maps.version()) known = {process.maps.version(), {}};
  return find_or_make(known.by_key, key_of(frame.pc, frame.is_return_address), [&] { return make_user_location(process, frame); });
}

profile::LocationId StackInterner::make_user_location(const space::Process& process, const unwind::Frame& frame) {
  profile::Location location;
  location.address = location.file_address = frame.pc;
  location.is_return_address = frame.is_return_address;
  const space::MappingPtr* mapping = process.maps.find(frame.pc - (frame.is_return_address ? 1 : 0));
  if (!mapping) {
    location.kind = profile::FrameKind::kUnknown;
    return add(location, {nullptr, process.pid, CodeKind::kUnmapped});
  }
  const MappedModule& module = modules_.of(process, *mapping);
  if (!module.file) {
    bool is_special = (*mapping)->kind == space::MappingKind::kSpecial;
    location.kind = is_special ? profile::FrameKind::kUser : profile::FrameKind::kJit;
    location.mapping = jit_mapping(process, **mapping);
    if (!is_special) note_jit_code(process);
    return add(location, {nullptr, process.pid, CodeKind::kJit});
  }
  location.mapping = file_mapping(module);
  const profile::Mapping& row = builder_.profile().mappings[location.mapping.index()];
  location.file_address = frame.pc - module.bias;
  location.address = location.file_address + row.load_bias;
  return add(location, {module.file, process.pid, CodeKind::kFile});
}

profile::LocationId StackInterner::kernel_location(uint64_t address, bool is_return) {
  return find_or_make(kernel_locations_, key_of(address, is_return), [&] { return make_kernel_location(address, is_return); });
}

profile::LocationId StackInterner::make_kernel_location(uint64_t address, bool is_return) {
  has_kernel_locations_ = true;
  if (!kernel_symbols_tried_) load_kernel_symbols(address);
  const object::KernelSymbols* symbols = kernel_symbols();
  auto symbol = symbols ? symbols->find(address - (is_return ? 1 : 0)) : std::nullopt;
  profile::Location location;
  location.kind = profile::FrameKind::kKernel;
  location.address = location.file_address = address;
  location.function_start = symbol ? symbol->start : 0;
  location.is_return_address = is_return;
  constexpr uint64_t kLargestFunction = 1 << 20;  // further behind the last symbol lies what the kernel made
  const bool is_sure = symbol && !object::is_generated(*symbol) && address - symbol->start < kLargestFunction;
  if (GeneratedCode::Code* code = generated_code(address - (is_return ? 1 : 0), is_sure)) {
    location.function_start = code->start;
    location.mapping = generated_mapping(*code);
    return add(location, {nullptr, 0, CodeKind::kKernel});
  }
  location.mapping = kernel_mapping(address, symbol && !is_sure ? "bpf" : symbol ? symbol->module : std::string_view());
  return add(location, {nullptr, 0, CodeKind::kKernel});
}

// Where kallsyms has no symbol, the kernel may have made code since it was read.
GeneratedCode::Code* StackInterner::generated_code(uint64_t address, bool is_known_otherwise) {
  constexpr uint64_t kReadAgainNs = 250'000'000;
  GeneratedCode::Code* code = generated_.find(address);
  if (code || is_known_otherwise || !options_.live || !kernel_symbols_) return code;
  const uint64_t now = monotonic_ns();
  if (now - generated_read_ns_ < kReadAgainNs) return nullptr;
  generated_read_ns_ = now;
  auto symbols = object::KernelSymbols::load(options_.kallsyms_path);
  if (symbols) generated_.add(symbols->generated());
  return generated_.find(address);
}

profile::MappingId StackInterner::generated_mapping(GeneratedCode::Code& code) {
  auto [it, is_new] = mappings_.try_emplace(fmt::format("[{}\n{}", code.name, code.serial));
  if (is_new) {
    // Never shared: what was there before has another name.
    builder_.profile().mappings.push_back({.path = builder_.intern(path_of_generated(code.name)), .start = code.start, .end = code.end});
    it->second = profile::MappingId(builder_.profile().mappings.size() - 1);
  }
  if (!std::exchange(code.is_told, true))
    learned_.push_back({.start = code.start, .length = static_cast<uint32_t>(code.end - code.start), .name = code.name});
  return it->second;
}

void StackInterner::apply(const event::KernelSymbol& symbol) {
  if (!generated_.apply(symbol)) return;
  kernel_locations_ = {};
  generated_version_++;
}

profile::LocationId StackInterner::add(const profile::Location& location, const LocationOrigin& origin) {
  profile::LocationId id = builder_.location(location);
  if (id.index() >= origins_.size()) origins_.resize(id.index() + 1);
  origins_[id.index()] = origin;
  return id;
}

profile::MappingId StackInterner::file_mapping(const MappedModule& module) {
  const space::Mapping& mapping = *module.mapping;
  auto [it, is_new] = mappings_.try_emplace(
      fmt::format("{}\n{}\n{}", mapping.path, module.file->build_id, mapping.start - mapping.file_offset - module.bias));
  if (is_new) {
    profile::Mapping row;
    row.path = builder_.intern(mapping.path);
    row.build_id = builder_.intern(module.file->build_id);
    row.start = mapping.start;
    row.end = mapping.end;
    row.file_offset = mapping.file_offset;
    row.load_bias = module.bias;
    it->second = builder_.mapping(row);
    return it->second;
  }
  // Another process, or another part of the same segment: in terms of the first one's addresses.
  profile::Mapping& row = builder_.profile().mappings[it->second.index()];
  uint64_t shift = row.load_bias - module.bias;
  if (mapping.start + shift < row.start) row.file_offset -= row.start - (mapping.start + shift);
  widen(row, mapping.start + shift, mapping.end + shift);
  return it->second;
}

// Files that name generated code, while they can be reached.
void StackInterner::note_jit_code(const space::Process& process) {
  const bool is_reachable = options_.live || modules_.surroundings().same_machine;
  if (!is_reachable || !jit_names_.note_code(process.pid)) return;
  for (const auto& [start, mapping] : process.maps.all()) {
    const std::string_view name = profile::base_name(mapping->path);
    if (mapping->kind == space::MappingKind::kFile && name.starts_with("jit-") && name.ends_with(".dump"))
      jit_names_.note_dump(process.pid, {mapping->start, mapping->end, mapping->path, mapping->file});
  }
}

profile::MappingId StackInterner::jit_mapping(const space::Process& process, const space::Mapping& mapping) {
  auto [it, is_new] = mappings_.try_emplace(fmt::format("\n{}\n{}", process.serial, mapping.start));
  if (is_new) {
    profile::Mapping row;
    row.path = builder_.intern(mapping.path.empty() ? std::string_view("//anon") : std::string_view(mapping.path));
    row.start = mapping.start;
    row.end = mapping.end;
    // Never shared: after fork, parent and child have other code at one address, named by a perf map of each.
    builder_.profile().mappings.push_back(row);
    it->second = profile::MappingId(builder_.profile().mappings.size() - 1);
  }
  widen(builder_.profile().mappings[it->second.index()], mapping.start, mapping.end);
  return it->second;
}

profile::MappingId StackInterner::kernel_mapping(uint64_t address, std::string_view module) {
  std::string path = module.empty() ? std::string("[kernel]") : fmt::format("[{}]", module);
  auto [it, is_new] = mappings_.try_emplace(path);
  if (is_new) {
    profile::Mapping row;
    row.path = builder_.intern(path);
    row.start = address;
    row.end = address + 1;
    it->second = builder_.mapping(row);
  }
  widen(builder_.profile().mappings[it->second.index()], address, address + 1);
  return it->second;
}

// Perf notes where a symbol of the kernel's start was ("[kernel.kallsyms]_text", at its file offset): each boot of a kernel
// may lie elsewhere.
bool StackInterner::is_this_boots_kernel(const object::KernelSymbols& symbols, uint64_t an_address) const {
  const space::MappingPtr* kernel = kernel_map_.find(an_address);
  if (!kernel || !(*kernel)->path.starts_with("[kernel.kallsyms]_") || (*kernel)->file_offset == 0) return true;
  auto symbol = symbols.find((*kernel)->file_offset);
  return symbol && symbol->start == (*kernel)->file_offset;
}

void StackInterner::load_kernel_symbols(uint64_t an_address) {
  kernel_symbols_tried_ = true;
  if (!options_.kallsyms_given && !modules_.surroundings().same_kernel) return note_foreign_kernel(diagnostics_);
  auto loaded = pipeline::load_kernel_symbols(options_.kallsyms_path, diagnostics_);
  if (!loaded) return;
  if (!options_.kallsyms_given && !is_this_boots_kernel(*loaded, an_address)) return note_foreign_kernel(diagnostics_);
  kernel_symbols_ = std::move(*loaded);
  if (!options_.live) return;
  generated_.add(kernel_symbols_->generated());
  generated_read_ns_ = monotonic_ns();
}

}  // namespace cprof::pipeline
