// The ELF header and the two tables it points to, checked. Called by ElfFile only; reads nothing else. A file whose
// program headers are absurd is refused; absurd section headers only make the sections absent, as the kernel runs such
// files and PT_GNU_EH_FRAME still unwinds them. Private to object.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "object/byte_source.h"
#include "object/elf_file.h"

namespace cprof::object {

struct ElfHeaders {
  Elf64_Ehdr header = {};
  std::vector<Elf64_Phdr> program_headers;
  std::vector<Segment> segments;  // the PT_LOAD ones
  std::vector<Section> sections;  // with the null section at 0; empty when absent or broken
  std::string section_problem;    // why the sections are absent, when the file claims some
};

Result<ElfHeaders> read_elf_headers(const ByteSource& source);

}  // namespace cprof::object
