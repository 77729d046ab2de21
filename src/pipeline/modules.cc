#include "pipeline/modules.h"

#include "object/process_files.h"

namespace cprof::pipeline {
namespace {

Result<std::shared_ptr<object::ElfFile>> open_vdso() {
  auto bytes = TRY(object::read_own_vdso());
  return object::ElfFile::from_memory(std::move(bytes), "[vdso]");
}

Result<std::shared_ptr<object::ElfFile>> open_file(const space::Process& process, const space::Mapping& mapping) {
  object::FileIdentity identity{mapping.file.major, mapping.file.minor, mapping.file.inode, mapping.build_id};
  Fd fd = TRY(object::open_mapped_file(process.access_tid, mapping.start, mapping.end, mapping.path, identity));
  return object::ElfFile::open(std::move(fd), mapping.path);
}

}  // namespace

const MappedModule& Modules::of(const space::Process& process, const space::MappingPtr& mapping) {
  auto& cache = mapped_[process.serial];
  if (auto it = cache.find(mapping.get()); it != cache.end()) return it->second;
  MappedModule module{mapping, file_of(process, *mapping), mapping->start};
  if (module.file && module.file->elf)
    module.bias = module.file->elf->load_bias(mapping->start, mapping->file_offset)
                      .value_or(mapping->start - mapping->file_offset);
  return cache.emplace(mapping.get(), std::move(module)).first->second;
}

ModuleFile* Modules::file_of(const space::Process& process, const space::Mapping& mapping) {
  if (mapping.kind == space::MappingKind::kAnonymous || mapping.kind == space::MappingKind::kSpecial) return nullptr;
  FileKey key{mapping.file.major, mapping.file.minor, mapping.file.inode, mapping.file.generation, mapping.path,
              object::to_hex(mapping.build_id)};
  auto& slot = files_[key];
  if (slot && (slot->elf || slot->a_pid == process.access_tid)) return slot.get();
  if (!slot) slot = std::make_unique<ModuleFile>();
  slot->path = mapping.path;
  slot->a_pid = process.access_tid;
  open(*slot, process, mapping);
  return slot.get();
}

void Modules::open(ModuleFile& file, const space::Process& process, const space::Mapping& mapping) {
  auto elf = mapping.kind == space::MappingKind::kVdso ? open_vdso() : open_file(process, mapping);
  if (!elf) {
    file.error = elf.error().message;
    file.build_id = object::to_hex(mapping.build_id);
    diagnostics_.add("modules_unreadable", Severity::kError,
                     "mapped files that could not be opened: their stacks stop there and their frames have no names", 1,
                     file.error);
    return;
  }
  file.elf = std::move(*elf);
  file.build_id = object::to_hex(file.elf->build_id());
  compile(file);
}

void Modules::compile(ModuleFile& file) {
  bool has_cfi = file.elf->find_section(".eh_frame") || file.elf->eh_frame_header_range();
  object::ElfFile* debug = has_cfi ? nullptr : debug_file(file);
  auto table = tables_.get(*file.elf, debug);
  if (table)
    file.table = std::move(*table);
  else
    diagnostics_.add("modules_without_unwind_info", Severity::kNotice,
                     "mapped files without usable unwind information; frame pointers are followed there", 1,
                     table.error().message);
  file.elf->drop_cached_data();
}

object::ElfFile* Modules::debug_file(ModuleFile& file) {
  if (!file.debug_searched && file.elf) {
    file.debug_searched = true;
    file.debug = finder_.find(*file.elf, file.path, file.a_pid, diagnostics_);
  }
  return file.debug.get();
}

}  // namespace cprof::pipeline
