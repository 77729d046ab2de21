#include "pipeline/snapshot_memory.h"

#include <algorithm>
#include <cstring>

namespace cprof::pipeline {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kMaxLiveReads = 16;
// A full snapshot goes on above its end: reads this close are the same stack, cut, and not another one.
constexpr uint64_t kSameStackBytes = 8ull << 20;

}  // namespace

void SnapshotMemory::reset(uint64_t sp, std::span<const std::byte> stack, bool is_full, LiveReader live) {
  sp_ = sp;
  stack_ = stack;
  is_full_ = is_full;
  live_ = std::move(live);
  used_outside_ = false;
  highest_ = 0;
  pieces_.clear();
  given_ = 0;
  live_reads_ = 0;
}

void SnapshotMemory::add_piece(uint64_t address, std::span<const std::byte> bytes) {
  pieces_.push_back({address, {bytes.begin(), bytes.end()}});
  given_ = pieces_.size();
}

bool SnapshotMemory::read_piece(uint64_t address, uint64_t& value) const {
  for (const Piece& piece : pieces_) {
    if (address < piece.address || piece.bytes.size() < 8 || address - piece.address > piece.bytes.size() - 8) continue;
    memcpy(&value, piece.bytes.data() + (address - piece.address), 8);
    return true;
  }
  return false;
}

std::optional<uint64_t> SnapshotMemory::given_word(uint64_t address) const {
  uint64_t value = 0;
  return read_piece(address, value) ? std::optional(value) : std::nullopt;
}

unwind::Memory::Read SnapshotMemory::read_u64(uint64_t address, uint64_t& value) {
  uint64_t offset = address - sp_;
  if (offset < stack_.size() && stack_.size() - offset >= 8) {
    memcpy(&value, stack_.data() + offset, 8);
    highest_ = std::max(highest_, offset);
    return Read::kOk;
  }
  if (is_full_ && address >= sp_ && offset < kSameStackBytes) return Read::kBeyondSnapshot;
  if (address & 7) return Read::kUnreadable;
  used_outside_ = true;
  if (read_piece(address, value)) return Read::kOk;
  if (!live_ || live_reads_++ >= kMaxLiveReads) return Read::kUnreadable;

  Piece piece{address, std::vector<std::byte>(kPageBytes - address % kPageBytes)};
  piece.bytes.resize(live_(address, piece.bytes));
  if (piece.bytes.size() < 8) return Read::kUnreadable;
  pieces_.push_back(std::move(piece));
  return read_piece(address, value) ? Read::kOk : Read::kUnreadable;
}

}  // namespace cprof::pipeline
