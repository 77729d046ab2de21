// Code that the kernel made while it ran: BPF programs and trampolines, by the places that the recording tells of
// (event::KernelSymbol) or, live, /proc/kallsyms. They come and go, so a list read at another time names the wrong one.
// Used by StackInterner, on its thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "event/event.h"
#include "object/kernel_symbols.h"

namespace cprof::pipeline {

class GeneratedCode {
 public:
  struct Code {
    uint64_t start = 0, end = 0;
    std::string name;
    bool is_told = true;  // the recording has an event of it
    uint32_t serial = 0;  // unique
  };

  // What replaces others' places ends them. Whether anything changed.
  bool apply(const event::KernelSymbol& symbol);
  // Those of kallsyms that are not known yet.
  void add(const std::vector<object::GeneratedSymbol>& symbols);
  Code* find(uint64_t address);

 private:
  void insert(Code code);
  void cut(uint64_t start, uint64_t end);

  std::map<uint64_t, Code> by_start_;
  uint32_t next_serial_ = 0;
};

// "[bpf_prog_6deef7357e7b4530_sd_fw]": a mapping of its own, which says its name wherever it goes.
std::string path_of_generated(std::string_view name);
// The name in such a path; "" for any other.
std::string_view generated_name(std::string_view path);
// Whether such code lies in the mapping, with a name or without.
bool is_generated_path(std::string_view path);

}  // namespace cprof::pipeline
