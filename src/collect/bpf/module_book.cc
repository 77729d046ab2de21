#include "collect/bpf/module_book.h"

#include <elf.h>

#include <algorithm>

#include "object/process_files.h"
#include "unwind/cfi/machine.h"
#include "unwind/cfi/module_table_impl.h"

namespace cprof::collect {
namespace {

// svma - file offset of each executable segment.
std::vector<uint64_t> code_deltas(const object::ElfFile& elf) {
  std::vector<uint64_t> deltas;
  for (const object::Segment& segment : elf.segments())
    if (segment.flags & PF_X) deltas.push_back(segment.vaddr - segment.file_offset);
  return deltas;
}

sampler_file_key key_of(const event::FileId& file) { return {file.inode, file.major << 20 | file.minor, 0}; }

constexpr sampler_file_key kVdsoKey{0, SAMPLER_VDSO_DEVICE, 0};

}  // namespace

ModuleBook::ModuleBook(SamplerMaps& maps, Diagnostics& diagnostics)
    : maps_(maps), diagnostics_(diagnostics), store_(maps, diagnostics), modules_(1) {}

uint32_t ModuleBook::number_of(const space::Mapping& mapping) {
  if (mapping.kind == space::MappingKind::kAnonymous || mapping.kind == space::MappingKind::kSpecial) return 0;
  Key key{mapping.file.major, mapping.file.minor, mapping.file.inode, mapping.file.generation, mapping.path,
          object::to_hex(mapping.build_id)};
  auto [it, is_new] = numbers_.try_emplace(std::move(key), static_cast<uint32_t>(modules_.size()));
  if (is_new && modules_.size() >= maps_.modules().size()) {
    diagnostics_.add("bpf_modules_full", Severity::kNotice,
                     "mapped files beyond what the BPF program can number: frame pointers are followed in them");
    it->second = 0;
  }
  if (it->second == 0) return 0;
  if (is_new) {
    Module& module = modules_.emplace_back();
    module.path = mapping.path;
    module.file = mapping.file;
    module.build_id = mapping.build_id;
    module.is_vdso = mapping.kind == space::MappingKind::kVdso;
    if (module.is_vdso) maps_.set_file(kVdsoKey, it->second);
    else if (mapping.file.inode) maps_.set_file(key_of(mapping.file), it->second);
  }
  Module& module = modules_[it->second];
  if (!module.failed) return it->second;
  // A file that could not be opened while its process died may be opened by the next one's.
  module.made = module.failed = false;
  maps_.modules()[it->second].asked = 0;
  maps_.modules()[it->second].state = SAMPLER_MODULE_UNKNOWN;
  return it->second;
}

uint64_t ModuleBook::bias_of(uint32_t number, const space::Mapping& mapping) const {
  const Module& module = modules_[number];
  uint64_t plain = mapping.start - mapping.file_offset;
  if (!module.elf) return plain;
  auto bias = module.elf->load_bias(mapping.start, mapping.file_offset);
  return bias ? *bias + module.delta : plain;
}

Result<std::shared_ptr<object::ElfFile>> ModuleBook::open(const Module& module, std::span<const Place> places) {
  if (module.is_vdso) return object::ElfFile::from_memory(TRY(object::read_own_vdso()), "[vdso]");
  object::FileIdentity identity{module.file.major, module.file.minor, module.file.inode, module.build_id};
  Error error{module.path + ": no process that maps it is left", ESRCH};
  for (const Place& place : places) {
    auto fd = object::open_mapped_file(place.tid, place.start, place.end, module.path, identity);
    if (fd) return object::ElfFile::open(std::move(*fd), module.path);
    error = fd.error();
  }
  return std::unexpected(error);
}

Result<void> ModuleBook::publish(uint32_t number, object::ElfFile& elf, int32_t tid) {
  Module& module = modules_[number];
  bool has_cfi = elf.find_section(".eh_frame") || elf.eh_frame_header_range();
  std::shared_ptr<object::ElfFile> debug;
  if (!has_cfi) debug = finder_.find(elf, module.path, tid, diagnostics_);
  auto table = TRY(tables_.get(elf, debug.get()));
  const unwind::ModuleTable::Impl& impl = table->impl();
  std::vector<uint64_t> deltas = code_deltas(elf);
  if (impl.machine != &unwind::kX86_64Cfi || deltas.empty()) return fail(module.path + ": no x86-64 code", ENOEXEC);
  module.delta = deltas.front();
  sampler_module told = TRY(store_.add(impl.table));
  sampler_module& shared = maps_.modules()[number];
  shared.base = impl.table.base - module.delta;
  shared.page_count = told.page_count;
  shared.pages_at = told.pages_at;
  __atomic_store_n(&shared.state, uint32_t{SAMPLER_MODULE_READY}, __ATOMIC_RELEASE);
  return {};
}

bool ModuleBook::make_table(uint32_t number, std::span<const Place> places) {
  if (number >= modules_.size() || is_made(number)) return false;
  Module& module = modules_[number];
  module.made = true;
  auto elf = open(module, places);
  Result<void> published;
  if (!elf) published = std::unexpected(elf.error());
  else published = publish(number, **elf, places.empty() ? 0 : places.front().tid);
  if (!published) {
    module.failed = !elf;
    maps_.modules()[number].state = SAMPLER_MODULE_NO_TABLE;
    diagnostics_.add("bpf_modules_without_table", Severity::kNotice,
                     "mapped files without an unwind table for the BPF program: frame pointers are followed in them", 1,
                     published.error().message);
    return false;
  }
  (*elf)->drop_cached_data();
  std::vector<uint64_t> deltas = code_deltas(**elf);
  bool has_several = std::ranges::any_of(deltas, [&](uint64_t delta) { return delta != module.delta; });
  if (!has_several) return false;
  module.elf = *elf;
  maps_.set_file(key_of(module.file), 0);  // one bias would not do
  return true;
}

}  // namespace cprof::collect
