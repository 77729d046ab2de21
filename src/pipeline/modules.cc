#include "pipeline/modules.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "object/process_files.h"

namespace cprof::pipeline {
namespace {

Result<Fd> open_mapped(const space::Process& process, const space::Mapping& mapping) {
  object::FileIdentity identity{mapping.file.major, mapping.file.minor, mapping.file.inode, mapping.build_id};
  return object::open_mapped_file(process.access_tid, mapping.start, mapping.end, mapping.path, identity);
}

Result<std::shared_ptr<object::ElfFile>> open_file_of_process(const space::Process& process, const space::Mapping& mapping) {
  return object::ElfFile::open(TRY(open_mapped(process, mapping)), mapping.path);
}

// Or a library of Windows, as .NET and Wine map them.
bool begins_as_program(int fd) {
  char start[SELFMAG] = {};
  return pread(fd, start, sizeof start, 0) == sizeof start &&
         (memcmp(start, ELFMAG, SELFMAG) == 0 || memcmp(start, "MZ", 2) == 0);
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
  if (!slot || (!slot->elf && slot->a_pid != process.access_tid)) {
    if (!slot) slot = std::make_unique<ModuleFile>();
    slot->path = mapping.path;
    slot->a_pid = process.access_tid;
    open(*slot, process, mapping);
  }
  return slot->is_generated ? nullptr : slot.get();
}

// Compilers that never let memory be written and executed at one address map a file twice: .NET, Erlang, V8, wasmtime.
bool Modules::is_generated_code(const space::Process& process, const space::Mapping& mapping) const {
  if (mapping.path.starts_with("/memfd:")) return true;
  auto fd = surroundings_.same_machine ? open_mapped(process, mapping) : fail("of another machine");
  return fd && !begins_as_program(fd->get());
}

Result<std::shared_ptr<object::ElfFile>> Modules::open_elf(const space::Process& process, const space::Mapping& mapping) const {
  if (mapping.kind == space::MappingKind::kVdso) return open_own_vdso(mapping.build_id, surroundings_.same_kernel);
  if (!surroundings_.same_machine) return sources_.open({mapping.path, mapping.build_id, false, may_fetch_}, diagnostics_);
  auto own = open_file_of_process(process, mapping);
  if (own || mapping.build_id.empty()) return own;
  auto other = sources_.open({mapping.path, mapping.build_id, false, may_fetch_}, diagnostics_);
  if (other) return other;
  return own;
}

void Modules::open(ModuleFile& file, const space::Process& process, const space::Mapping& mapping) {
  auto elf = open_elf(process, mapping);
  file.is_generated = !elf && is_generated_code(process, mapping);
  if (file.is_generated) return;
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

std::span<const std::byte> Modules::build_id_of(const event::Mmap& mmap) {
  auto [known, is_new] = build_ids_.try_emplace({mmap.file, std::string(mmap.path)});
  if (!is_new) return known->second;
  object::FileIdentity identity{mmap.file.major, mmap.file.minor, mmap.file.inode, {}};
  auto fd = object::open_mapped_file(mmap.task.tid, mmap.start, mmap.start + mmap.length, known->first.second, identity);
  auto elf = fd ? object::ElfFile::open(std::move(*fd), known->first.second) : Result<std::shared_ptr<object::ElfFile>>(nullptr);
  if (!elf || !*elf) return {};
  auto id = (*elf)->build_id();
  known->second.assign(id.begin(), id.end());
  return known->second;
}

object::ElfFile* Modules::debug_file(ModuleFile& file) {
  if (!file.debug_searched && file.elf) {
    file.debug_searched = true;
    std::optional<int32_t> pid;
    if (surroundings_.same_machine) pid = file.a_pid;
    file.debug = sources_.debug_file(*file.elf, file.path, pid, diagnostics_);
  }
  return file.debug.get();
}

void Modules::fetch_debug_file(ModuleFile& file) {
  if (file.debug || !file.elf || has_debug_info(*file.elf)) return;
  file.debug = sources_.fetch_debug_file(file.elf->build_id(), file.path, diagnostics_);
}

bool Modules::open_elsewhere(ModuleFile& file) {
  auto build_id = build_id_from_hex(file.build_id);
  if (build_id.empty()) return false;
  auto elf = sources_.open({file.path, build_id, false, true}, diagnostics_);
  if (elf) file.elf = std::move(*elf);
  return elf.has_value();
}

}  // namespace cprof::pipeline
