// Unwinds one stack from registers and memory, with compact rows where they suffice and the full CFI interpreter where
// they do not. Callers: the pipeline (perf snapshots), tests (against libdwfl). One thread per SnapshotUnwinder.
// Never reads anything but the Memory and the ModuleProvider it is given.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace cprof::unwind {

class ModuleTable;  // module_table.h: rows and CFI compiled from one ELF file, shared between processes

enum class Machine : uint8_t { kX86_64, kAarch64 };

enum class StopReason : uint8_t {
  kUndefinedReturn,     // CFI says so: the root (_start, clone3, a CFI gap that holds the entry point)
  kNullReturn,          // return address 0, or a non-executable pc below 64 KiB: also a root
  kTruncatedSnapshot,   // the next value lies above the snapshot's end
  kMaxDepth,
  kNoMapping,           // pc in no executable mapping
  kNoUnwindInfo,        // code without CFI and no usable frame pointer
  kBadUnwindInfo,       // CFI is broken here
  kUnreadableMemory,
  kNoProgress,          // the CFA did not grow
  kUnsupportedAbi,      // 32-bit, or no registers
};
inline bool is_complete(StopReason r) { return r == StopReason::kUndefinedReturn || r == StopReason::kNullReturn; }

enum class FrameOrigin : uint8_t { kRegisters, kCfi, kFramePointer, kSignal };  // kSignal: an interrupted, exact pc

struct Frame {
  uint64_t pc = 0;
  bool is_return_address = false;   // false for the first frame and for frames interrupted by a signal
  FrameOrigin origin = FrameOrigin::kRegisters;
};

struct Stack {
  std::vector<Frame> frames;        // leaf first; reused between calls
  StopReason stop = StopReason::kNoMapping;
  bool is_complete() const { return unwind::is_complete(stop); }
};

// Registers by DWARF number (x86-64: 0 rax 1 rdx 2 rcx 3 rbx 4 rsi 5 rdi 6 rbp 7 rsp 8-15 r8-r15 16 rip;
// aarch64: 0-30 x0-x30, 31 sp, 32 pc).
struct RegisterSet {
  uint64_t value[33] = {};
  uint64_t valid = 0;  // bit n: value[n] is known
};

// Memory as it was at the sampled moment.
class Memory {
 public:
  virtual ~Memory() = default;
  enum class Read : uint8_t { kOk, kBeyondSnapshot, kUnreadable };
  virtual Read read_u64(uint64_t address, uint64_t& value) = 0;
};

struct Module {
  uint64_t start = 0, end = 0;      // the executable mapping that holds the pc
  uint64_t bias = 0;                // avma - svma
  const ModuleTable* table = nullptr;  // null: executable memory without a file (JIT) or an unreadable file
};

class ModuleProvider {
 public:
  virtual ~ModuleProvider() = default;
  virtual std::optional<Module> find(uint64_t pc) = 0;  // executable mappings only

  // What find() answers may be remembered across unwind() calls for as long as both numbers stay the same: the process
  // (never used for another while the unwinder lives) and a count that changes with its executable mappings.
  // Generation 0: nothing is remembered.
  virtual uint64_t process_key() const { return 0; }
  virtual uint64_t generation() const { return 0; }

  // Whether a call instruction ends right before pc: asked where a return address must be guessed.
  virtual bool follows_call(uint64_t /*pc*/) { return false; }

  // The 8 bytes of code at pc, the first one lowest: asked where there is no CFI. Nothing: not known.
  virtual std::optional<uint64_t> code_at(uint64_t /*pc*/) { return std::nullopt; }
};

class SnapshotUnwinder {
 public:
  explicit SnapshotUnwinder(Machine machine);
  ~SnapshotUnwinder();

  // registers must hold pc and sp; max_depth frames at most. The result is valid until the next call.
  const Stack& unwind(const RegisterSet& registers, Memory& memory, ModuleProvider& modules, size_t max_depth);

  struct Impl;  // unwinder_walk.h

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace cprof::unwind
