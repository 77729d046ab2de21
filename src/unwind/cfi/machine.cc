#include "unwind/cfi/machine.h"

namespace cprof::unwind {

const MachineCfi* find_machine_cfi(uint16_t elf_machine) {
  for (const MachineCfi* machine : {&kX86_64Cfi, &kAarch64Cfi})
    if (machine->elf_machine == elf_machine) return machine;
  return nullptr;
}

}  // namespace cprof::unwind
