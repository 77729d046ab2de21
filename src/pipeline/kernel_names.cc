#include "pipeline/kernel_names.h"

#include <string>

#include "pipeline/generated_code.h"

namespace cprof::pipeline {
namespace {

void note(Diagnostics& diagnostics, std::string_view name, const std::string& why) {
  diagnostics.add(name, Severity::kNotice, "kernel frames have no names: " + why);
}

}  // namespace

std::optional<object::KernelSymbols> load_kernel_symbols(const std::string& path, Diagnostics& diagnostics) {
  auto loaded = object::KernelSymbols::load(path);
  if (!loaded) {
    note(diagnostics, "kernel_symbols_unreadable", loaded.error().message);
    return std::nullopt;
  }
  if (loaded->hidden()) {
    note(diagnostics, "kernel_symbols_hidden", path + " hides its addresses (run as root, or sysctl kernel.kptr_restrict=0)");
    return std::nullopt;
  }
  return std::move(*loaded);
}

void note_foreign_kernel(Diagnostics& diagnostics) {
  note(diagnostics, "kernel_symbols_foreign",
       "the recording is from another kernel or boot; --kallsyms FILE names a copy of its /proc/kallsyms");
}

std::optional<KernelName> kernel_name(const object::KernelSymbols* symbols, uint64_t address, std::string_view mapping) {
  if (const std::string_view name = generated_name(mapping); !name.empty()) return KernelName{name, 0};
  if (mapping == object::kGeneratedCode) return KernelName{object::kGeneratedCode, 0};
  auto symbol = symbols ? symbols->find(address) : std::nullopt;
  if (!symbol) return std::nullopt;
  if (object::is_generated(*symbol)) return KernelName{object::kGeneratedCode, 0};
  return KernelName{symbol->name, symbol->start};
}

}  // namespace cprof::pipeline
