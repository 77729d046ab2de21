// The kernel's texts: /proc/kallsyms, /proc/PID/maps, /proc/PID/stat and status. Each reader gets the same bytes.
#include "object/kernel_symbols.h"
#include "object/process_files.h"
#include "object/process_stat.h"

using namespace cprof::object;

static void read_kallsyms(std::string_view text) {
  auto symbols = KernelSymbols::parse(text);
  if (symbols.hidden() && symbols.size() != 0) __builtin_trap();
  uint64_t address = 0;
  for (unsigned char c : text.substr(0, 64)) {
    address = address << 8 | c;
    auto found = symbols.find(address);
    if (found && (found->start > address || found->name.empty())) __builtin_trap();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  read_kallsyms(text);
  parse_maps(text, [](const MapsEntry& entry) {
    if (entry.start >= entry.end) __builtin_trap();
  });
  (void)parse_stat(text);
  (void)parse_innermost_pid(text);
  return 0;
}
