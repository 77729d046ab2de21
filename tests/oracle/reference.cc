#include "reference.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <set>

#include "image_files.h"

namespace cprof::oracle {
namespace {

// avma - svma of a mapped file, worked out with libelf: not with the product's own reader.
std::optional<uint64_t> bias_from_headers(int fd, const Mapping& mapping) {
  Elf* elf = elf_begin(fd, ELF_C_READ, nullptr);
  std::optional<uint64_t> bias;
  size_t count = 0;
  if (elf && elf_getphdrnum(elf, &count) == 0) {
    for (size_t i = 0; i < count && !bias; ++i) {
      GElf_Phdr header;
      if (!gelf_getphdr(elf, static_cast<int>(i), &header) || header.p_type != PT_LOAD || !(header.p_flags & PF_X)) continue;
      uint64_t page_offset = header.p_offset & ~uint64_t{4095}, page_vaddr = header.p_vaddr & ~uint64_t{4095};
      uint64_t offset = mapping.is_vdso() ? page_offset : mapping.file_offset;
      if (offset >= page_offset && offset < header.p_offset + header.p_filesz) bias = mapping.start - (page_vaddr + (offset - page_offset));
    }
  }
  if (elf) elf_end(elf);
  return bias;
}

int vdso_fd() {
  const auto* base = reinterpret_cast<const char*>(getauxval(AT_SYSINFO_EHDR));
  if (!base) return -1;
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  size_t size = header->e_shoff + size_t{header->e_shnum} * header->e_shentsize;
  int fd = memfd_create("vdso", MFD_CLOEXEC);
  if (fd >= 0 && write(fd, base, size) != static_cast<ssize_t>(size)) {
    close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

struct Reference::Impl {
  Dwfl* dwfl = nullptr;
  std::shared_ptr<const AddressSpace> space;
  const Snapshot* snapshot = nullptr;
  ImageFiles* files = nullptr;
  std::vector<uint64_t> frames;
  char* debug_path = nullptr;
  Dwfl_Callbacks callbacks = {};

  static pid_t next_thread(Dwfl*, void* argument, void** thread_argument) {
    if (*thread_argument) return 0;
    *thread_argument = argument;
    return static_cast<Impl*>(argument)->snapshot->tid;
  }
  static bool memory_read(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* argument) {
    auto* self = static_cast<Impl*>(argument);
    uint64_t value;
    if (SnapshotMemory(*self->snapshot, *self->files).read_u64(address, value) != unwind::Memory::Read::kOk) return false;
    *result = value;
    return true;
  }
  static bool set_initial_registers(Dwfl_Thread* thread, void* argument) {
    auto* self = static_cast<Impl*>(argument);
    Dwarf_Word registers[17];
    for (int i = 0; i < 17; ++i) registers[i] = self->snapshot->registers[i];
    return dwfl_thread_state_registers(thread, 0, 17, registers);
  }
  static int on_frame(Dwfl_Frame* frame, void* argument) {
    auto* self = static_cast<Impl*>(argument);
    Dwarf_Addr pc;
    bool is_activation;
    if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
    self->frames.push_back(pc);
    return self->frames.size() < 1024 ? DWARF_CB_OK : DWARF_CB_ABORT;
  }

  void report(const Mapping& mapping, std::set<std::pair<std::string, uint64_t>>& reported) {
    if (!mapping.is_file() && !mapping.is_vdso()) return;
    int fd = mapping.is_vdso() ? vdso_fd() : open(mapping.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    auto bias = bias_from_headers(fd, mapping);
    bool is_new = bias && reported.emplace(mapping.path, *bias).second;
    if (!is_new || !dwfl_report_elf(dwfl, mapping.path.c_str(), mapping.path.c_str(), fd, *bias, true)) close(fd);
  }

  void rebuild() {
    static const Dwfl_Thread_Callbacks kThreads = {next_thread, nullptr, memory_read, set_initial_registers, nullptr, nullptr};
    if (dwfl) dwfl_end(dwfl);
    dwfl = dwfl_begin(&callbacks);
    std::set<std::pair<std::string, uint64_t>> reported;
    for (const auto& [start, mapping] : *space) report(mapping, reported);
    dwfl_report_end(dwfl, nullptr, nullptr);
    dwfl_attach_state(dwfl, nullptr, snapshot->pid, &kThreads, this);
  }
};

Reference::Reference() : impl_(std::make_unique<Impl>()) {
  elf_version(EV_CURRENT);
  unsetenv("DEBUGINFOD_URLS");
  impl_->callbacks.find_elf = dwfl_build_id_find_elf;
  impl_->callbacks.find_debuginfo = dwfl_standard_find_debuginfo;
  impl_->callbacks.debuginfo_path = &impl_->debug_path;
}

Reference::~Reference() {
  if (impl_->dwfl) dwfl_end(impl_->dwfl);
}

void Reference::enter(const Snapshot& snapshot) {
  impl_->snapshot = &snapshot;
  if (impl_->space == snapshot.space) return;
  impl_->space = snapshot.space;
  impl_->rebuild();
}

const std::vector<uint64_t>& Reference::unwind(const Snapshot& snapshot, ImageFiles& files) {
  impl_->frames.clear();
  impl_->files = &files;
  impl_->snapshot = &snapshot;
  dwfl_getthread_frames(impl_->dwfl, snapshot.tid, Impl::on_frame, impl_.get());
  return impl_->frames;
}

bool Reference::is_without_cfi(uint64_t pc) {
  Dwfl_Module* module = dwfl_addrmodule(impl_->dwfl, pc);
  if (!module) return true;
  for (auto get : {dwfl_module_eh_cfi, dwfl_module_dwarf_cfi}) {
    Dwarf_Addr bias;
    Dwarf_CFI* cfi = get(module, &bias);
    Dwarf_Frame* frame = nullptr;
    if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &frame) != 0) continue;
    free(frame);
    return false;
  }
  return true;
}

}  // namespace cprof::oracle
