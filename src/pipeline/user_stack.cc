#include "pipeline/user_stack.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>

#include "pipeline/call_check.h"

namespace cprof::pipeline {
namespace {

constexpr size_t kMaxPendingPieces = 1 << 16, kMaxPendingBytes = 16 << 20;  // a sample follows its pieces
constexpr uint64_t kNullPage = 64 * 1024;
constexpr uint64_t kRescanIntervalNs = 100'000'000;
constexpr uint64_t kCodeWordsNs = 1'000'000'000;
constexpr size_t kMostCodeWords = 1 << 16, kMostCodeProcesses = 256;

// PERF_REG_X86_* in perf's numbering -> DWARF's. Flags and segment registers are of no use to unwinding.
constexpr std::array<int8_t, 24> kX86PerfToDwarf = {0,  3,  2,  1,  4,  5,  6,  7,  16, -1, -1, -1,
                                                    -1, -1, -1, -1, 8,  9,  10, 11, 12, 13, 14, 15};
constexpr unsigned kX86Sp = 7, kX86Pc = 16, kArmSp = 31, kArmPc = 32;
constexpr uint64_t kAbi64 = 2;  // PERF_SAMPLE_REGS_ABI_64

unwind::RegisterSet to_dwarf(event::Arch arch, const event::Registers& registers) {
  unwind::RegisterSet set;
  for (unsigned perf = 0; perf < 64; perf++) {
    auto value = registers.get(perf);
    if (!value) continue;
    int dwarf = arch == event::Arch::kAarch64 ? (perf <= kArmPc ? static_cast<int>(perf) : -1)
                                              : (perf < kX86PerfToDwarf.size() ? kX86PerfToDwarf[perf] : -1);
    if (dwarf < 0) continue;
    set.value[dwarf] = *value;
    set.valid |= uint64_t{1} << dwarf;
  }
  return set;
}

profile::StackEnd to_stack_end(unwind::StopReason reason) {
  using enum unwind::StopReason;
  switch (reason) {
    case kUndefinedReturn:
    case kNullReturn: return profile::StackEnd::kComplete;
    case kTruncatedSnapshot: return profile::StackEnd::kTruncatedSnapshot;
    case kMaxDepth: return profile::StackEnd::kMaxDepth;
    case kNoMapping: return profile::StackEnd::kNoMapping;
    case kNoUnwindInfo: return profile::StackEnd::kNoUnwindInfo;
    case kBadUnwindInfo: return profile::StackEnd::kBadUnwindInfo;
    case kUnreadableMemory: return profile::StackEnd::kUnreadableMemory;
    case kNoProgress: return profile::StackEnd::kNoProgress;
    case kUnsupportedAbi: return profile::StackEnd::kUnsupportedAbi;
  }
  return profile::StackEnd::kNotUnwound;
}

unwind::Machine machine_of(event::Arch arch) {
  return arch == event::Arch::kAarch64 ? unwind::Machine::kAarch64 : unwind::Machine::kX86_64;
}

}  // namespace

class UserStackReader::Provider : public unwind::ModuleProvider {
 public:
  Provider(UserStackReader& reader, space::Process& process, uint64_t time_ns)
      : reader_(reader), process_(process), time_ns_(time_ns) {}

  std::optional<unwind::Module> find(uint64_t pc) override {
    const space::MappingPtr* mapping = reader_.code_at(process_, pc, time_ns_);
    if (!mapping) return std::nullopt;
    const MappedModule& module = reader_.modules_.of(process_, *mapping);
    const unwind::ModuleTable* table = module.file ? module.file->table.get() : nullptr;
    return unwind::Module{(*mapping)->start, (*mapping)->end, module.bias, table};
  }
  bool follows_call(uint64_t pc) override {
    const space::MappingPtr* mapping = process_.maps.find(pc - 1);
    if (!mapping) return false;
    const MappedModule& module = reader_.modules_.of(process_, *mapping);
    return module.file && module.file->elf && pipeline::follows_call(*module.file->elf, pc - module.bias, reader_.arch_);
  }
  std::optional<uint64_t> code_at(uint64_t pc) override {
    const space::MappingPtr* mapping = process_.maps.find(pc);
    if (!mapping) return std::nullopt;
    const MappedModule& module = reader_.modules_.of(process_, *mapping);
    if (!module.file) return reader_.generated_code_at(process_, pc, time_ns_);
    std::array<std::byte, 8> bytes;
    if (!module.file->elf || !module.file->elf->read_at_svma(pc - module.bias, bytes)) return std::nullopt;
    return std::bit_cast<uint64_t>(bytes);
  }
  uint64_t process_key() const override { return process_.serial + uint64_t{1}; }
  uint64_t generation() const override { return process_.maps.version() + 1; }

 private:
  UserStackReader& reader_;
  space::Process& process_;
  uint64_t time_ns_;
};

UserStackReader::UserStackReader(event::Arch arch, const Options& options, Modules& modules, space::Tracker& tracker,
                                 Diagnostics& diagnostics)
    : options_(options), modules_(modules), tracker_(tracker), diagnostics_(diagnostics), arch_(arch),
      unwinder_(machine_of(arch)) {}

void UserStackReader::begin_read(space::Process& process, int32_t access_tid) {
  learned_.clear();
  learned_entries_.clear();
  learned_originals_.clear();
  live_code_.clear();
  process.access_tid = access_tid;
  memory_.reset(0, {}, false, nullptr);
}

UserStack UserStackReader::read(const event::Sample& sample, space::Process& process) {
  begin_read(process, sample.task.tid);
  if (sample.snapshot) return from_snapshot(sample, process);
  if (!sample.user_chain.empty()) return from_chain(sample.user_chain, process);
  return {};
}

// The executable mapping at pc, read again from the live process where it may be missing; null: there is none.
const space::MappingPtr* UserStackReader::code_at(space::Process& process, uint64_t pc, uint64_t time_ns) {
  const space::MappingPtr* mapping = process.maps.find(pc);
  if (!mapping) {
    refresh_maps(process, pc, time_ns);
    mapping = process.maps.find(pc);
  }
  if (!mapping || !(*mapping)->executable) return nullptr;
  if ((*mapping)->may_copy && restore_copied_text(process, *mapping, pc, time_ns)) mapping = process.maps.find(pc);
  return mapping;
}

UserStack UserStackReader::from_snapshot(const event::Sample& sample, space::Process& process) {
  const event::Snapshot& snapshot = *sample.snapshot;
  UserStack result;
  if (snapshot.registers.abi == 0) return result;
  result.had_registers = true;
  unwind::RegisterSet registers = to_dwarf(arch_, snapshot.registers);
  unsigned pc = arch_ == event::Arch::kAarch64 ? kArmPc : kX86Pc;
  unsigned sp = arch_ == event::Arch::kAarch64 ? kArmSp : kX86Sp;
  if (snapshot.registers.abi != kAbi64) {
    chain_frames_.assign(1, {registers.value[pc], false, unwind::FrameOrigin::kRegisters});
    result.frames = chain_frames_;
    result.end = profile::StackEnd::kUnsupportedAbi;
    return result;
  }
  SnapshotMemory::LiveReader live;
  if (options_.live)
    live = [this, tid = process.access_tid](uint64_t address, std::span<std::byte> into) {
      return options_.live->read_memory(tid, address, into);
    };
  memory_.reset(registers.value[sp], snapshot.stack, snapshot.is_full, std::move(live));
  std::erase_if(pending_, [&](const auto& entry) {
    if (entry.first != sample.task) return false;
    memory_.add_piece(entry.second.address, entry.second.bytes);
    pending_bytes_ -= entry.second.bytes.size();
    return true;
  });

  if (process.maps.empty()) refresh_maps(process, registers.value[pc], sample.time_ns);
  Provider provider(*this, process, sample.time_ns);
  const unwind::Stack& stack = unwinder_.unwind(registers, memory_, provider, options_.max_depth);
  result.frames = stack.frames;
  result.end = end_of(stack, sample, process);
  if (result.end == profile::StackEnd::kExecInProgress) result.frames = {};
  if (memory_.used_outside()) {
    // Changed memory ends a walk by chance more often than a root that is marked by a zero.
    if (stack.stop == unwind::StopReason::kNullReturn) result.end = profile::StackEnd::kUnreadableMemory;
    drop_implausible_frames(result, process);
  }
  return result;
}

profile::StackEnd UserStackReader::end_of(const unwind::Stack& stack, const event::Sample& sample,
                                          const space::Process& process) const {
  if (stack.stop == unwind::StopReason::kNoMapping && stack.frames.size() == 1 && sample.in_kernel &&
      process.image_before_exec.find(stack.frames[0].pc))
    return profile::StackEnd::kExecInProgress;
  return to_stack_end(stack.stop);
}

// Live memory may have changed since the sample: a stack that used it ends before the first return address that no call
// instruction precedes.
void UserStackReader::drop_implausible_frames(UserStack& stack, space::Process& process) {
  for (size_t i = 0; i < stack.frames.size(); i++) {
    const unwind::Frame& frame = stack.frames[i];
    if (!frame.is_return_address) continue;
    const space::MappingPtr* mapping = process.maps.find(frame.pc - 1);
    if (!mapping) continue;
    const MappedModule& module = modules_.of(process, *mapping);
    if (!module.file || !module.file->elf || follows_call(*module.file->elf, frame.pc - module.bias, arch_)) continue;
    stack.frames = stack.frames.first(i);
    stack.end = profile::StackEnd::kUnreadableMemory;
    return;
  }
}

// What the kernel took for frame pointers may have been anything: a chain ends where it leaves the code.
UserStack UserStackReader::from_chain(std::span<const uint64_t> chain, space::Process& process) {
  chain_frames_.clear();
  UserStack result;
  result.had_registers = true;
  result.end = profile::StackEnd::kComplete;
  for (uint64_t pc : chain) {
    if (chain_frames_.size() == options_.max_depth) {
      result.end = profile::StackEnd::kMaxDepth;
      break;
    }
    bool is_return = !chain_frames_.empty();
    if (is_return && pc < kNullPage) break;  // a root that is marked by a zero
    const space::MappingPtr* mapping = process.maps.find(pc - (is_return ? 1 : 0));
    if (is_return && !process.maps.empty() && (!mapping || !(*mapping)->executable)) {
      result.end = profile::StackEnd::kBadPc;
      break;
    }
    chain_frames_.push_back({pc, is_return, is_return ? unwind::FrameOrigin::kFramePointer : unwind::FrameOrigin::kRegisters});
  }
  result.frames = chain_frames_;
  return result;
}

void UserStackReader::add_memory(const event::StackMemory& memory) {
  pending_bytes_ += memory.bytes.size();
  while (!pending_.empty() && (pending_.size() >= kMaxPendingPieces || pending_bytes_ > kMaxPendingBytes)) {
    diagnostics_.add("stack_memory_unclaimed", Severity::kNotice, "pieces of stack memory in the recording whose sample never came");
    pending_bytes_ -= pending_.front().second.bytes.size();
    pending_.pop_front();
  }
  pending_.push_back({memory.task, {memory.address, {memory.bytes.begin(), memory.bytes.end()}}});
}

void UserStackReader::refresh_maps(space::Process& process, uint64_t pc, uint64_t time_ns) {
  bool suspect = process.maps.empty() || lost_ns_ > process.last_rescan_ns;
  if (!options_.live || !suspect || process.image_before_exec.find(pc)) return;
  if (process.last_rescan_ns && time_ns < process.last_rescan_ns + kRescanIntervalNs) return;
  process.last_rescan_ns = time_ns;
  auto entries = options_.live->read_maps(process.access_tid);
  if (!entries) return;
  diagnostics_.add("maps_read_again", Severity::kInfo, "times that a process's mappings were read from /proc during the run");
  for (object::MapsEntry& entry : *entries)
    if (entry.executable) learned_entries_.push_back(std::move(entry));
  for (const object::MapsEntry& entry : learned_entries_) {
    event::Mmap mmap{time_ns, {process.pid, process.pid}, entry.start, entry.end - entry.start, entry.file_offset,
                     PROT_READ | PROT_EXEC, MAP_PRIVATE, {entry.major, entry.minor, entry.inode, 0}, {}, entry.path};
    learned_.push_back(mmap);
    tracker_.apply(mmap);
  }
}

// Asked of the live process, or of the recording that holds what a live one answered.
std::optional<uint64_t> UserStackReader::generated_code_at(const space::Process& process, uint64_t pc, uint64_t time_ns) {
  if (code_words_.size() > kMostCodeProcesses) code_words_.clear();
  CodeWords& known = code_words_[process.serial];
  if (time_ns - known.read_ns >= kCodeWordsNs || known.by_pc.size() > kMostCodeWords) known = {time_ns, {}};
  auto [it, is_new] = known.by_pc.try_emplace(pc);
  if (!is_new) return it->second;
  std::array<std::byte, 8> bytes;
  if (!options_.live) return it->second = memory_.given_word(pc);
  if (options_.live->read_memory(process.access_tid, pc, bytes) != bytes.size()) return std::nullopt;
  live_code_.push_back({pc, {bytes.begin(), bytes.end()}});
  return it->second = std::bit_cast<uint64_t>(bytes);
}

// Text that a program copied onto other pages at its old place (huge pages) keeps its file's names: when the bytes around
// the pc are the file's, the mapping is told again as the file's.
bool UserStackReader::restore_copied_text(space::Process& process, const space::MappingPtr& mapping, uint64_t pc,
                                          uint64_t time_ns) {
  if (!options_.live) return false;
  space::MappingPtr original = mapping->may_copy;
  const MappedModule& module = modules_.of(process, original);
  std::array<std::byte, 64> now, then;
  uint64_t probe = std::max(pc - pc % now.size(), mapping->start);
  if (!module.file || !module.file->elf || !module.file->elf->read_at_svma(probe - module.bias, then)) return false;
  if (options_.live->read_memory(process.access_tid, probe, now) != now.size() || now != then) return false;
  learned_originals_.push_back(original);
  event::Mmap mmap{time_ns, {process.pid, process.pid}, mapping->start, mapping->end - mapping->start,
                   original->file_offset + (mapping->start - original->start), PROT_READ | PROT_EXEC, MAP_PRIVATE,
                   original->file, original->build_id, original->path};
  learned_.push_back(mmap);
  tracker_.apply(mmap);
  return true;
}

}  // namespace cprof::pipeline
