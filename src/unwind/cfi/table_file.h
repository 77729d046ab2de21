// A compiled table as bytes on disk. Caller: TableCache. Reading trusts nothing: after read_table() succeeds, every
// index that the unwinder will follow has been checked.
#pragma once

#include <optional>
#include <vector>

#include "unwind/cfi/module_table_impl.h"

namespace cprof::unwind {

// What a table is compiled from; a table on disk is used only for the same.
uint64_t hash_of_input(const ModuleInput& input);

std::vector<std::byte> write_table(const ModuleTable::Impl& table, uint64_t input_hash);

// Null: another version or input, damaged, or wrong in itself. Takes the input's CFI bytes.
std::unique_ptr<ModuleTable::Impl> read_table(std::span<const std::byte> bytes, uint64_t input_hash, ModuleInput& input);

}  // namespace cprof::unwind
