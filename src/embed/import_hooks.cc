#include "embed/import_hooks.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <span>

#include "embed/library.h"
#include "embed/scopes.h"
#include "object/process_files.h"

namespace cprof::embed {
namespace {

// ---- the functions that are put in front ----

using CreateThread = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using Exit = void (*)(int);
using Jump = void (*)(jmp_buf, int);

CreateThread real_create = nullptr;
Exit real_exit = nullptr;
Jump real_longjmp = nullptr, real_siglongjmp = nullptr, real_checked_longjmp = nullptr;

struct Start {
  void* (*function)(void*);
  void* argument;
};

// A tail call: the thread's stack has no frame of ours.
void* begin_thread(void* data) {
  const Start start = *static_cast<Start*>(data);
  free(data);
  if (Library::get().samples_threads()) Library::get().attach(false);
  return start.function(start.argument);
}

int create_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*), void* argument) {
  if (!Library::get().samples_threads()) return real_create(thread, attributes, function, argument);
  auto* start = static_cast<Start*>(malloc(sizeof(Start)));
  if (!start) return real_create(thread, attributes, function, argument);
  *start = {function, argument};
  const int error = real_create(thread, attributes, begin_thread, start);
  if (error) free(start);
  return error;
}

[[noreturn]] void exit_at_once(int status) {
  Library::get().at_exit();
  real_exit(status);
  __builtin_unreachable();
}

// glibc keeps the stack pointer of a jump encrypted: xor with the thread's guard, then rotated.
uintptr_t target_of(const __jmp_buf_tag* buffer) {
#if defined(__x86_64__)
  constexpr int kStackPointer = 6, kRotation = 0x11;
  uintptr_t guard;
  __asm__("mov %%fs:0x30, %0" : "=r"(guard));
  const auto kept = static_cast<uintptr_t>(buffer->__jmpbuf[kStackPointer]);
  return (kept >> kRotation | kept << (64 - kRotation)) ^ guard;
#else
  (void)buffer;
  return 0;
#endif
}

void jump(jmp_buf buffer, int value) {
  close_jumped_scopes(target_of(buffer));
  real_longjmp(buffer, value);
}

void jump_with_mask(jmp_buf buffer, int value) {
  close_jumped_scopes(target_of(buffer));
  real_siglongjmp(buffer, value);
}

void checked_jump(jmp_buf buffer, int value) {
  close_jumped_scopes(target_of(buffer));
  real_checked_longjmp(buffer, value);
}

struct Hook {
  const char* name;
  void* replacement;
  void** real;
};

template <typename F>
void* address_of(F* function) {
  return reinterpret_cast<void*>(function);
}

// Made at its first use: a preloaded library starts its session before the variables of this file have their values.
std::span<const Hook> hooks() {
  static const Hook kHooks[] = {
      {"pthread_create", address_of(create_thread), reinterpret_cast<void**>(&real_create)},
      {"_exit", address_of(exit_at_once), reinterpret_cast<void**>(&real_exit)},
      {"_Exit", address_of(exit_at_once), reinterpret_cast<void**>(&real_exit)},
      {"longjmp", address_of(jump), reinterpret_cast<void**>(&real_longjmp)},
      {"_longjmp", address_of(jump), reinterpret_cast<void**>(&real_longjmp)},
      {"siglongjmp", address_of(jump_with_mask), reinterpret_cast<void**>(&real_siglongjmp)},
      {"__longjmp_chk", address_of(checked_jump), reinterpret_cast<void**>(&real_checked_longjmp)},
  };
  return kHooks;
}

// ---- import tables ----

// What of a loaded file's dynamic section is needed.
struct Imports {
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  std::span<const ElfW(Rela)> tables[2];
};

Imports imports_of(const dl_phdr_info& info) {
  Imports imports;
  const ElfW(Rela)* starts[2] = {};
  size_t bytes[2] = {};
  for (const ElfW(Phdr)& header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    if (header.p_type != PT_DYNAMIC) continue;
    // glibc has made the addresses absolute, but in the vdso.
    for (auto* entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr); entry->d_tag != DT_NULL; entry++) {
      const uint64_t value = entry->d_un.d_ptr;
      switch (entry->d_tag) {
        case DT_SYMTAB: imports.symbols = reinterpret_cast<const ElfW(Sym)*>(value); break;
        case DT_STRTAB: imports.names = reinterpret_cast<const char*>(value); break;
        case DT_RELA: starts[0] = reinterpret_cast<const ElfW(Rela)*>(value); break;
        case DT_RELASZ: bytes[0] = value; break;
        case DT_JMPREL: starts[1] = reinterpret_cast<const ElfW(Rela)*>(value); break;
        case DT_PLTRELSZ: bytes[1] = value; break;
        default: break;
      }
    }
  }
  for (int n = 0; n < 2; n++)
    if (starts[n]) imports.tables[n] = {starts[n], bytes[n] / sizeof(ElfW(Rela))};
  return imports;
}

bool is_import_slot(uint32_t type) {
#if defined(__x86_64__)
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
#endif
}

bool is_made_read_only(const dl_phdr_info& info, uintptr_t slot) {
  for (const ElfW(Phdr)& header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    const uintptr_t start = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_RELRO && slot >= start && slot < start + header.p_memsz) return true;
  }
  return false;
}

bool is_read_only_now(uintptr_t slot) {
  auto maps = object::read_maps(getpid());
  if (!maps) return false;
  return std::ranges::any_of(*maps, [&](const object::MapsEntry& entry) {
    return slot >= entry.start && slot < entry.end && !entry.writable;
  });
}

// A file that another thread is loading is listed before it is relocated, and its pages are still written to then: only what
// was read-only before is made so again.
void put(const dl_phdr_info& info, uintptr_t slot, void* replacement) {
  auto* place = reinterpret_cast<void**>(slot);
  if (__atomic_load_n(place, __ATOMIC_RELAXED) == replacement) return;
  const uintptr_t page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), page = slot & ~(page_size - 1);
  const bool is_protected = is_made_read_only(info, slot), was_read_only = is_protected && is_read_only_now(slot);
  if (is_protected && mprotect(reinterpret_cast<void*>(page), page_size, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n(place, replacement, __ATOMIC_RELEASE);
  if (was_read_only) mprotect(reinterpret_cast<void*>(page), page_size, PROT_READ);
}

const Hook* hook_named(const char* name) {
  for (const Hook& hook : hooks())
    if (*hook.real && strcmp(hook.name, name) == 0) return &hook;
  return nullptr;
}

bool is_own(const dl_phdr_info& info) {
  const auto own = reinterpret_cast<uintptr_t>(&hook_imports);
  for (const ElfW(Phdr)& header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    const uintptr_t start = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && (header.p_flags & PF_X) && own >= start && own < start + header.p_memsz) return true;
  }
  return false;
}

// Whether this library is a part of the program itself, whose imports are then hooked all the same.
bool is_program(const dl_phdr_info& info) { return !info.dlpi_name || !*info.dlpi_name; }

int hook_file(dl_phdr_info* info, size_t, void*) {
  const char* name = info->dlpi_name ? info->dlpi_name : "";
  if (strncmp(name, "linux-vdso", 10) == 0 || (is_own(*info) && !is_program(*info))) return 0;
  const Imports imports = imports_of(*info);
  if (!imports.symbols || !imports.names) return 0;
  for (const auto& table : imports.tables) {
    for (const ElfW(Rela)& relocation : table) {
      if (!is_import_slot(ELF64_R_TYPE(relocation.r_info))) continue;
      const ElfW(Sym)& symbol = imports.symbols[ELF64_R_SYM(relocation.r_info)];
      const Hook* hook = symbol.st_shndx == SHN_UNDEF ? hook_named(imports.names + symbol.st_name) : nullptr;
      if (hook) put(*info, info->dlpi_addr + relocation.r_offset, hook->replacement);
    }
  }
  return 0;
}

}  // namespace

void hook_imports() {
  static std::mutex one_at_a_time;
  std::lock_guard lock(one_at_a_time);
  for (const Hook& hook : hooks())
    if (!*hook.real) *hook.real = dlsym(RTLD_DEFAULT, hook.name);
  // The loader's lock is held: no file is unmapped meanwhile.
  dl_iterate_phdr(hook_file, nullptr);
}

}  // namespace cprof::embed
