// CFI from hostile files: the input is a section's bytes. It is compiled for both machines as .eh_frame and .debug_frame;
// then every row is looked up and stepped, and the interpreter runs at every FDE, over memory made of the input too.
#include <cstring>

#include "unwind/cfi/interpreter.h"
#include "unwind/cfi/table_file.h"

namespace {

using namespace cprof::unwind;

constexpr uint64_t kTextStart = 0x1000, kTextEnd = 0x400000;  // around the section, so that real CFI as a seed finds its text

class InputMemory final : public Memory {
 public:
  explicit InputMemory(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Read read_u64(uint64_t address, uint64_t& value) override {
    if (address >= bytes_.size() * 16) return Read::kBeyondSnapshot;
    value = 0;
    size_t at = address % (bytes_.size() + 1);
    memcpy(&value, bytes_.data() + at, std::min<size_t>(8, bytes_.size() - at));
    return Read::kOk;
  }

 private:
  std::span<const std::byte> bytes_;
};

int read_input(void* memory, uint64_t address, uint64_t* value) {
  return static_cast<InputMemory*>(memory)->read_u64(address, *value) != Memory::Read::kOk;
}

void walk(const ModuleTable::Impl& table, InputMemory& memory) {
  for (const FdeRange& fde : table.fdes) {
    RegisterSet registers;
    for (uint64_t n = 0; n < CP_MAX_REGISTERS; n++) registers.value[n] = n * 8;
    registers.valid = ~uint64_t{0};
    registers.value[table.machine->core->pc] = table.rows.base + fde.start;
    CfiStepInput input{0, true};
    interpret_step(table, input, registers, memory);

    const cp_rule* rule = cp_find_rule(&table.table, table.rows.base + fde.start);
    if (!rule) __builtin_trap();  // an FDE always has a row
    cp_frame frame{};
    frame.pc = table.rows.base + fde.start;
    frame.exact = 1;
    cp_step(table.machine->core, rule, &frame, read_input, &memory);
  }
}

ModuleInput input_for(const MachineCfi& machine, std::span<const std::byte> bytes, bool is_eh_frame) {
  ModuleInput input;
  input.compile.machine = &machine;
  input.compile.text = {{kTextStart, kTextEnd}};
  input.compile.entry = 0x1500;
  input.compile.read_text = [bytes](uint64_t svma, std::span<std::byte> into) {
    for (size_t i = 0; i < into.size(); i++) into[i] = bytes.empty() ? std::byte{} : bytes[(svma + i) % bytes.size()];
    return true;
  };
  CfiSource& source = input.sources.emplace_back();
  source.bytes.assign(bytes.begin(), bytes.end());
  source.is_eh_frame = is_eh_frame;
  source.svma = is_eh_frame ? 0x300000 : 0;
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  InputMemory memory(bytes);
  for (const MachineCfi* machine : {&kX86_64Cfi, &kAarch64Cfi})
    for (bool is_eh_frame : {true, false}) {
      auto table = compile_module(input_for(*machine, bytes, is_eh_frame));
      walk(*table, memory);
      ModuleInput again = input_for(*machine, bytes, is_eh_frame);
      if (!read_table(write_table(*table, 1), 1, again)) __builtin_trap();  // what we write is sound
    }
  ModuleInput other = input_for(kX86_64Cfi, bytes, true);
  read_table(bytes, 1, other);
  return 0;
}
