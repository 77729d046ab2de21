// Whether an address can be a return address: a call instruction ends right before it. Used to refuse frames whose
// return address came from memory that may have changed since the sample.
#pragma once

#include <cstdint>
#include <span>

#include "event/event.h"
#include "object/elf_file.h"

namespace cprof::pipeline {

// before: the bytes that end where the address begins, at most 8 are looked at.
bool ends_with_call(std::span<const std::byte> before, event::Arch arch);

bool follows_call(object::ElfFile& elf, uint64_t svma, event::Arch arch);

}  // namespace cprof::pipeline
