// The user stack of one sample: from its snapshot by unwind tables, or as the kernel walked it by frame pointers.
// Refreshes a process's mappings from /proc when they are known to be incomplete (live only).
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "event/event.h"
#include "pipeline/modules.h"
#include "pipeline/pipeline.h"
#include "pipeline/snapshot_memory.h"
#include "profile/profile.h"
#include "space/tracker.h"
#include "unwind/cfi/unwinder.h"

namespace cprof::pipeline {

struct UserStack {
  std::span<const unwind::Frame> frames;  // leaf first; valid until the next call
  profile::StackEnd end = profile::StackEnd::kNotUnwound;
  bool had_registers = false;
};

class UserStackReader {
 public:
  UserStackReader(event::Arch arch, const Options& options, Modules& modules, space::Tracker& tracker,
                  Diagnostics& diagnostics);

  UserStack read(const event::Sample& sample, space::Process& process);
  // Of a stack that the source walked; in walked_stack.cc.
  UserStack read_walked(const event::StackDef& def, space::Process& process);

  // Memory that the next sample of this task needs beside its snapshot (from a recording).
  void add_memory(const event::StackMemory& memory);
  // Mappings may have been lost: each process's are read again when an address is not found.
  void note_lost(uint64_t time_ns) { lost_ns_ = time_ns; }

  bool nearly_cut() const { return memory_.nearly_cut(); }
  bool used_live_memory() const { return !memory_.live_pieces().empty(); }
  // What the last read() asked of the live process, for the journal.
  std::span<const SnapshotMemory::Piece> live_pieces() const { return memory_.live_pieces(); }
  std::span<const SnapshotMemory::Piece> live_code() const { return live_code_; }  // likewise
  std::span<const event::Mmap> learned_mappings() const { return learned_; }

 private:
  class Provider;

  UserStack from_snapshot(const event::Sample& sample, space::Process& process);
  UserStack from_chain(std::span<const uint64_t> chain, space::Process& process);
  void begin_read(space::Process& process, int32_t access_tid);
  void append_walked(const event::StackDef& def, space::Process& process);
  const space::MappingPtr* code_at(space::Process& process, uint64_t pc, uint64_t time_ns);
  void refresh_maps(space::Process& process, uint64_t pc, uint64_t time_ns);
  std::optional<uint64_t> generated_code_at(const space::Process& process, uint64_t pc, uint64_t time_ns);
  bool restore_copied_text(space::Process& process, const space::MappingPtr& mapping, uint64_t pc, uint64_t time_ns);
  profile::StackEnd end_of(const unwind::Stack& stack, const event::Sample& sample, const space::Process& process) const;
  void drop_implausible_frames(UserStack& stack, space::Process& process);

  const Options& options_;
  Modules& modules_;
  space::Tracker& tracker_;
  Diagnostics& diagnostics_;
  event::Arch arch_;
  unwind::SnapshotUnwinder unwinder_;
  SnapshotMemory memory_;
  std::vector<unwind::Frame> chain_frames_;
  std::deque<std::pair<event::Task, SnapshotMemory::Piece>> pending_;
  size_t pending_bytes_ = 0;
  std::vector<event::Mmap> learned_;
  std::vector<object::MapsEntry> learned_entries_;    // own the paths of learned_
  std::vector<space::MappingPtr> learned_originals_;  // likewise
  // Words of generated code, which may be replaced: they are believed for a while.
  struct CodeWords {
    uint64_t read_ns = 0;
    std::unordered_map<uint64_t, std::optional<uint64_t>> by_pc;
  };
  std::unordered_map<uint32_t, CodeWords> code_words_;  // by the process's serial
  std::vector<SnapshotMemory::Piece> live_code_;
  uint64_t lost_ns_ = 0;
};

}  // namespace cprof::pipeline
