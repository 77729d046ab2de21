// Tests only: this process as a target. Its mappings with their tables, its memory, its registers at a point.
#pragma once

#include <elf.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "object/elf_file.h"
#include "unwind/cfi/module_table.h"
#include "unwind/cfi/unwinder.h"

namespace cprof::unwind {

class OwnMemory final : public Memory {
 public:
  Read read_u64(uint64_t address, uint64_t& value) override {
    iovec local{&value, 8}, remote{reinterpret_cast<void*>(address), 8};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 8 ? Read::kOk : Read::kUnreadable;
  }
};

class OwnModules final : public ModuleProvider {
 public:
  OwnModules() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) add(line);
  }
  std::optional<Module> find(uint64_t pc) override {
    finds++;
    for (const Module& module : modules_)
      if (pc >= module.start && pc < module.end) return module;
    return std::nullopt;
  }
  std::optional<uint64_t> code_at(uint64_t pc) override {
    uint64_t code = 0;
    return OwnMemory().read_u64(pc, code) == Memory::Read::kOk ? std::optional(code) : std::nullopt;
  }
  uint64_t generation() const override { return cached ? 1 : 0; }
  bool cached = false;
  uint64_t finds = 0;

 private:
  void add(const std::string& line) {
    std::istringstream in(line);
    std::string range, permissions, offset, device, inode, path;
    in >> range >> permissions >> offset >> device >> inode >> path;
    if (permissions.find('x') == std::string::npos || path == "[vsyscall]") return;
    Module module;
    module.start = std::stoull(range, nullptr, 16);
    module.end = std::stoull(range.substr(range.find('-') + 1), nullptr, 16);
    object::ElfFile* file = open(path, module);
    if (file) {
      uint64_t file_offset = path == "[vdso]" ? 0 : std::stoull(offset, nullptr, 16);
      module.bias = file->load_bias(module.start, file_offset).value_or(0);
      auto& table = tables_[path];
      if (!table) table = ModuleTable::compile(*file, nullptr).value();
      module.table = table.get();
    }
    modules_.push_back(module);
  }

  object::ElfFile* open(const std::string& path, const Module& module) {
    if (path == "[vdso]") {
      std::vector<std::byte> bytes(module.end - module.start);
      memcpy(bytes.data(), reinterpret_cast<void*>(module.start), bytes.size());
      files_[path] = object::ElfFile::from_memory(std::move(bytes), "[vdso]").value();
    } else if (path.starts_with('/') && !files_.contains(path)) {
      files_[path] = object::ElfFile::open(path).value();
    }
    return files_[path].get();
  }

  std::map<std::string, std::shared_ptr<object::ElfFile>> files_;
  std::map<std::string, std::shared_ptr<const ModuleTable>> tables_;
  std::vector<Module> modules_;
};

// The kernel's and getcontext's register order to DWARF numbers (x86-64).
inline RegisterSet registers_of(const ucontext_t& context) {
  constexpr int kOrder[17] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                              REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  RegisterSet registers;
  for (int n = 0; n < 17; n++) registers.value[n] = static_cast<uint64_t>(context.uc_mcontext.gregs[kOrder[n]]);
  registers.valid = (1u << 17) - 1;
  return registers;
}

}  // namespace cprof::unwind
