// Stack memory as it was at the sampled moment, for the unwinder: the snapshot, then extra pieces that the recording
// carries, then (live only) the thread's own memory. The last is needed below a signal handler on an alternate stack.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "event/event.h"
#include "unwind/cfi/unwinder.h"

namespace cprof::pipeline {

class SnapshotMemory : public unwind::Memory {
 public:
  // Reads up to into.size() bytes of the live thread's memory at address; 0 when it cannot.
  using LiveReader = std::function<size_t(uint64_t address, std::span<std::byte> into)>;

  // A piece of memory outside the snapshot; pieces found by the live reader are added so that a journal can keep them.
  struct Piece {
    uint64_t address = 0;
    std::vector<std::byte> bytes;
  };

  void reset(uint64_t sp, std::span<const std::byte> stack, bool is_full, LiveReader live);
  void add_piece(uint64_t address, std::span<const std::byte> bytes);
  Read read_u64(uint64_t address, uint64_t& value) override;
  // Of a piece, code for instance: no read of the stack.
  std::optional<uint64_t> given_word(uint64_t address) const;

  // Whether the walk came close to the end of a full snapshot: the next one may be cut.
  bool nearly_cut() const { return is_full_ && highest_ >= stack_.size() / 4 * 3; }
  bool used_outside() const { return used_outside_; }
  std::span<const Piece> live_pieces() const { return {pieces_.data() + given_, pieces_.size() - given_}; }

 private:
  bool read_piece(uint64_t address, uint64_t& value) const;

  uint64_t sp_ = 0;
  std::span<const std::byte> stack_;
  bool is_full_ = false;
  bool used_outside_ = false;
  uint64_t highest_ = 0;  // offset of the highest word read in the snapshot
  LiveReader live_;
  std::vector<Piece> pieces_;
  size_t given_ = 0;
  size_t live_reads_ = 0;
};

}  // namespace cprof::pipeline
