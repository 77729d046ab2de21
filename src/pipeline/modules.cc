#include "pipeline/modules.h"

#include <algorithm>

#include "object/process_files.h"

namespace cprof::pipeline {
namespace {

Result<std::shared_ptr<object::ElfFile>> open_vdso(const space::Mapping& mapping, bool same_kernel) {
  auto bytes = TRY(object::read_own_vdso());
  auto vdso = TRY(object::ElfFile::from_memory(std::move(bytes), "[vdso]"));
  bool same = mapping.build_id.empty() ? same_kernel : std::ranges::equal(vdso->build_id(), mapping.build_id);
  if (!same) return fail("[vdso]: the recording is from another kernel");
  return vdso;
}

Result<std::shared_ptr<object::ElfFile>> open_file_of_process(const space::Process& process, const space::Mapping& mapping) {
  object::FileIdentity identity{mapping.file.major, mapping.file.minor, mapping.file.inode, mapping.build_id};
  Fd fd = TRY(object::open_mapped_file(process.access_tid, mapping.start, mapping.end, mapping.path, identity));
  return object::ElfFile::open(std::move(fd), mapping.path);
}

Result<std::shared_ptr<object::ElfFile>> open_file_from_elsewhere(const space::Mapping& mapping) {
  if (mapping.build_id.empty())
    return fail(mapping.path + ": the recording is from another machine and does not tell this file's build-id");
  Fd fd = TRY(object::open_in_directory_root("/", mapping.path));
  if (!object::matches_identity(fd.get(), {0, 0, 0, mapping.build_id}))
    return fail(mapping.path + ": not the recorded file, by its build-id");
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

Result<std::shared_ptr<object::ElfFile>> Modules::open_elf(const space::Process& process, const space::Mapping& mapping) const {
  if (mapping.kind == space::MappingKind::kVdso) return open_vdso(mapping, surroundings_.same_kernel);
  return surroundings_.same_machine ? open_file_of_process(process, mapping) : open_file_from_elsewhere(mapping);
}

void Modules::open(ModuleFile& file, const space::Process& process, const space::Mapping& mapping) {
  auto elf = open_elf(process, mapping);
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
    std::optional<int32_t> pid;
    if (surroundings_.same_machine) pid = file.a_pid;
    file.debug = finder_.find(*file.elf, file.path, pid, diagnostics_);
  }
  return file.debug.get();
}

}  // namespace cprof::pipeline
