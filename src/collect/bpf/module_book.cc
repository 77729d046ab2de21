#include "collect/bpf/module_book.h"

#include <elf.h>

#include <algorithm>

#include "object/process_files.h"
#include "unwind/cfi/machine.h"
#include "unwind/cfi/module_table_impl.h"

namespace cprof::collect {
namespace {

constexpr size_t kMostPlaces = 8;

// svma - file offset of each executable segment.
std::vector<uint64_t> code_deltas(const object::ElfFile& elf) {
  std::vector<uint64_t> deltas;
  for (const object::Segment& segment : elf.segments())
    if (segment.flags & PF_X) deltas.push_back(segment.vaddr - segment.file_offset);
  return deltas;
}

sampler_file_key key_of(const event::FileId& file) { return {file.inode, file.major << 20 | file.minor, 0}; }

}  // namespace

ModuleBook::ModuleBook(SamplerMaps& maps, Diagnostics& diagnostics)
    : maps_(maps), diagnostics_(diagnostics), store_(maps, diagnostics), modules_(1) {}

uint32_t ModuleBook::number_of(const space::Process& process, const space::Mapping& mapping) {
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
    if (mapping.file.inode) maps_.set_file(key_of(mapping.file), it->second);
  }
  note_place(modules_[it->second], process, mapping);
  return it->second;
}

// A file that could not be opened while its process died may be opened by the next one's.
void ModuleBook::note_place(Module& module, const space::Process& process, const space::Mapping& mapping) {
  if (module.made && !module.failed) return;
  int32_t tid = process.access_tid ? process.access_tid : process.pid;
  bool is_known = std::ranges::any_of(module.places, [&](const Place& p) { return p.tid == tid && p.start == mapping.start; });
  if (is_known) return;
  if (module.places.size() == kMostPlaces) module.places.erase(module.places.begin());
  module.places.push_back({tid, mapping.start, mapping.end});
  if (!module.failed) return;
  sampler_module& told = maps_.modules()[static_cast<size_t>(&module - modules_.data())];
  module.made = module.failed = false;
  told.asked = 0;
  told.state = SAMPLER_MODULE_UNKNOWN;
}

uint64_t ModuleBook::bias_of(uint32_t number, const space::Mapping& mapping) const {
  const Module& module = modules_[number];
  uint64_t plain = mapping.start - mapping.file_offset;
  if (!module.elf) return plain;
  auto bias = module.elf->load_bias(mapping.start, mapping.file_offset);
  return bias ? *bias + module.delta : plain;
}

Result<std::shared_ptr<object::ElfFile>> ModuleBook::open(const Module& module) {
  if (module.is_vdso) return object::ElfFile::from_memory(TRY(object::read_own_vdso()), "[vdso]");
  object::FileIdentity identity{module.file.major, module.file.minor, module.file.inode, module.build_id};
  Error error{module.path + ": no process that maps it is left", ESRCH};
  for (auto place = module.places.rbegin(); place != module.places.rend(); ++place) {
    auto fd = object::open_mapped_file(place->tid, place->start, place->end, module.path, identity);
    if (fd) return object::ElfFile::open(std::move(*fd), module.path);
    error = fd.error();
  }
  return std::unexpected(error);
}

Result<std::shared_ptr<const unwind::ModuleTable>> ModuleBook::compile(Module& module, object::ElfFile& elf) {
  bool has_cfi = elf.find_section(".eh_frame") || elf.eh_frame_header_range();
  std::shared_ptr<object::ElfFile> debug;
  int32_t tid = module.places.empty() ? 0 : module.places.back().tid;
  if (!has_cfi) debug = finder_.find(elf, module.path, tid, diagnostics_);
  return tables_.get(elf, debug.get());
}

Result<void> ModuleBook::publish(uint32_t number, object::ElfFile& elf) {
  Module& module = modules_[number];
  module.table = TRY(compile(module, elf));
  const unwind::ModuleTable::Impl& impl = module.table->impl();
  std::vector<uint64_t> deltas = code_deltas(elf);
  if (impl.machine != &unwind::kX86_64Cfi || deltas.empty()) return fail(module.path + ": no x86-64 code", ENOEXEC);
  module.delta = deltas.front();
  sampler_module told = TRY(store_.add(impl.table));
  told.base = impl.table.base - module.delta;
  sampler_module& shared = maps_.modules()[number];
  shared.base = told.base;
  shared.page_count = told.page_count;
  shared.pages_at = told.pages_at;
  __atomic_store_n(&shared.state, uint32_t{SAMPLER_MODULE_READY}, __ATOMIC_RELEASE);
  return {};
}

bool ModuleBook::make_table(uint32_t number) {
  if (number >= modules_.size() || is_made(number)) return false;
  Module& module = modules_[number];
  module.made = true;
  auto elf = open(module);
  Result<void> published;
  if (!elf) published = std::unexpected(elf.error());
  else published = publish(number, **elf);
  if (!published) {
    module.failed = !elf;
    maps_.modules()[number].state = SAMPLER_MODULE_NO_TABLE;
    diagnostics_.add("bpf_modules_without_table", Severity::kNotice,
                     "mapped files without an unwind table for the BPF program: frame pointers are followed in them", 1,
                     published.error().message);
    return false;
  }
  (*elf)->drop_cached_data();
  module.places.clear();
  std::vector<uint64_t> deltas = code_deltas(**elf);
  bool has_several = std::ranges::any_of(deltas, [&](uint64_t delta) { return delta != module.delta; });
  module.table = nullptr;  // the kernel has a copy
  if (has_several) {
    module.elf = *elf;
    maps_.set_file(key_of(module.file), 0);  // one bias would not do
  }
  return has_several;
}

}  // namespace cprof::collect
