// Turns unwound stacks into call sites of the profile. A location is (file, address in the file), so processes that map
// the same file share it; the common root of a thread's neighbouring samples is found by comparison, not by hashing.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "object/kernel_symbols.h"
#include "pipeline/generated_code.h"
#include "pipeline/jit_names.h"
#include "pipeline/modules.h"
#include "pipeline/pipeline.h"
#include "profile/builder.h"
#include "profile/keep.h"
#include "profile/row_index.h"
#include "space/tracker.h"
#include "unwind/cfi/unwinder.h"

namespace cprof::pipeline {

enum class CodeKind : uint8_t { kFile, kKernel, kJit, kUnmapped };

// What the namer needs to know of a location.
struct LocationOrigin {
  ModuleFile* file = nullptr;
  int32_t pid = 0;  // JIT: whose perf map
  CodeKind kind = CodeKind::kUnmapped;
};

// The last stack of a thread, root first.
struct StackCache {
  uint32_t process_serial = ~0u;
  uint64_t map_version = 0, generated_version = 0;
  std::vector<uint64_t> keys;
  std::vector<profile::CallSiteId> sites;
};

class StackInterner {
 public:
  // kernel_map: what the recording says of the kernel's own place.
  StackInterner(profile::ProfileBuilder& builder, Modules& modules, const Options& options, const space::AddressMap& kernel_map,
                Diagnostics& diagnostics);

  // Both leaf first. Invalid when both are empty.
  profile::CallSiteId intern(const space::Process& process, StackCache& cache, std::span<const unwind::Frame> user,
                             std::span<const uint64_t> kernel);
  void forget(const space::Process& process) { processes_.erase(process.serial); }

  // The builder's rows have new numbers; rows that are gone are forgotten here too.
  void renumber(const profile::Renumbering& map);

  const LocationOrigin& origin(profile::LocationId id) const { return origins_[id.index()]; }
  JitNames& jit_names() { return jit_names_; }
  // The kernel made code, or let go of it. Its addresses may mean something else from now on.
  void apply(const event::KernelSymbol& symbol);
  // What the last stacks needed of such code that no event has told; without times. For the journal.
  std::span<const event::KernelSymbol> learned_symbols() const { return learned_; }
  // From here on their addresses mean them, as in a replay.
  void forget_learned() {
    if (learned_.empty()) return;
    learned_.clear();
    kernel_locations_ = {};
    generated_version_++;
  }
  bool has_kernel_locations() const { return has_kernel_locations_; }
  // Once a kernel frame was interned; null: none that fit.
  const object::KernelSymbols* kernel_symbols() const { return kernel_symbols_ ? &*kernel_symbols_ : nullptr; }

 private:
  struct ProcessLocations {
    uint64_t map_version = 0;
    profile::PairIndex by_key;  // the two halves of a key
  };

  profile::LocationId user_location(const space::Process& process, const unwind::Frame& frame);
  profile::LocationId make_user_location(const space::Process& process, const unwind::Frame& frame);
  profile::LocationId kernel_location(uint64_t address, bool is_return);
  profile::LocationId make_kernel_location(uint64_t address, bool is_return);
  profile::LocationId add(const profile::Location& location, const LocationOrigin& origin);
  profile::MappingId file_mapping(const MappedModule& module);
  void note_jit_code(const space::Process& process);
  profile::MappingId jit_mapping(const space::Process& process, const space::Mapping& mapping);
  void load_kernel_symbols(uint64_t an_address);
  bool is_this_boots_kernel(const object::KernelSymbols& symbols, uint64_t an_address) const;
  profile::MappingId kernel_mapping(uint64_t address, std::string_view module);
  GeneratedCode::Code* generated_code(uint64_t address, bool is_known_otherwise);
  profile::MappingId generated_mapping(GeneratedCode::Code& code);

  profile::ProfileBuilder& builder_;
  Modules& modules_;
  Diagnostics& diagnostics_;
  const Options& options_;
  const space::AddressMap& kernel_map_;
  std::optional<object::KernelSymbols> kernel_symbols_;
  bool kernel_symbols_tried_ = false;
  JitNames jit_names_;
  std::vector<LocationOrigin> origins_;
  std::unordered_map<uint32_t, ProcessLocations> processes_;
  profile::PairIndex kernel_locations_;
  GeneratedCode generated_;
  uint64_t generated_version_ = 0, generated_read_ns_ = 0;
  std::vector<event::KernelSymbol> learned_;
  bool has_kernel_locations_ = false;
  std::unordered_map<std::string, profile::MappingId> mappings_;
  std::vector<uint64_t> new_keys_;
};

}  // namespace cprof::pipeline
