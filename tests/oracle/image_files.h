// The files behind the mappings: ELF images, our unwind tables and code bytes, each opened once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture.h"
#include "object/elf_file.h"
#include "unwind/cfi/module_table.h"
#include "unwind/cfi/unwinder.h"

namespace cprof::oracle {

struct Image {
  std::shared_ptr<object::ElfFile> file;                       // null: not readable as ELF
  std::shared_ptr<const unwind::ModuleTable> table;            // null: no unwind information could be compiled
};

class ImageFiles {
 public:
  const Image& of(const Mapping& mapping);
  std::optional<uint64_t> bias_of(const Mapping& mapping);
  // Bytes of code at pc's mapping from address on; empty for anonymous memory.
  std::vector<uint8_t> code(const AddressSpace& space, uint64_t address, size_t count);

 private:
  std::map<std::string, Image> images_;
};

// What both unwinders may read: the snapshot, else read-only file content.
class SnapshotMemory : public unwind::Memory {
 public:
  SnapshotMemory(const Snapshot& snapshot, ImageFiles& files) : snapshot_(snapshot), files_(files) {}
  Read read_u64(uint64_t address, uint64_t& value) override;

 private:
  const Snapshot& snapshot_;
  ImageFiles& files_;
};

class SpaceModules : public unwind::ModuleProvider {
 public:
  SpaceModules(const AddressSpace& space, ImageFiles& files);
  std::optional<unwind::Module> find(uint64_t pc) override;

 private:
  std::vector<unwind::Module> modules_;  // by start
};

}  // namespace cprof::oracle
