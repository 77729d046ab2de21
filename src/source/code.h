// The instructions of a function with their source lines. Bytes come from an ElfFile, lines from its debug info. Called by
// annotate; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "object/elf_file.h"
#include "symbolize/symbolizer.h"

namespace cprof::source {

struct Instruction {
  uint64_t address = 0;  // svma
  uint32_t size = 0;
  std::string text;      // "mov %rax,%rbx"; bytes that are none: ".byte 0x06"
};

// [start, end) of the file's code, at most 1 MiB of it.
Result<std::vector<Instruction>> disassemble(object::ElfFile& file, uint64_t start, uint64_t end);

struct CodeRange {
  uint64_t start = 0, end = 0;
};
// The function that holds the address, by the symbol tables; a symbol without a size ends where the next one begins.
std::optional<CodeRange> function_at(object::ElfFile& file, object::ElfFile* debug, uint64_t address);

struct SourcePlace {
  std::string function;  // demangled
  std::string file;
  uint32_t line = 0;     // 0 unknown
};
struct CodeLine {
  Instruction instruction;
  std::vector<SourcePlace> places;  // innermost inlined function first; empty: no debug info for it
};

// Names and lines are looked up for each instruction. Files of strangers are read in the sandbox.
Result<std::vector<CodeLine>> code_of(std::shared_ptr<object::ElfFile> file, std::shared_ptr<object::ElfFile> debug,
                                      CodeRange range, symbolize::DemangleStyle style, Diagnostics& diagnostics);

}  // namespace cprof::source
