#include "uprobe/exit_sites.h"

#include <capstone/capstone.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cprof::uprobe {
namespace {

constexpr uint64_t kMaxCode = 1 << 20;
constexpr size_t kMaxParts = 16;
constexpr unsigned char kEndBranch[] = {0xf3, 0x0f, 0x1e, 0xfa};

// By the number that instructions have for them.
constexpr x86_reg kRegisters[] = {X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX, X86_REG_RSP, X86_REG_RBP, X86_REG_RSI, X86_REG_RDI,
                                  X86_REG_R8,  X86_REG_R9,  X86_REG_R10, X86_REG_R11, X86_REG_R12, X86_REG_R13, X86_REG_R14, X86_REG_R15};

std::optional<uint8_t> number_of(unsigned reg) {
  if (reg == X86_REG_INVALID) return UPROBE_NO_REGISTER;
  const auto* found = std::ranges::find(kRegisters, static_cast<x86_reg>(reg));
  if (found == std::end(kRegisters)) return std::nullopt;
  return static_cast<uint8_t>(found - kRegisters);
}

bool is_return(const cs_insn& insn) { return insn.id == X86_INS_RET || insn.id == X86_INS_RETF || insn.id == X86_INS_RETFQ; }

bool is_jump(const cs_insn& insn) {
  const cs_detail& detail = *insn.detail;
  return std::find(detail.groups, detail.groups + detail.groups_count, uint8_t{CS_GRP_JUMP}) != detail.groups + detail.groups_count;
}

// Of 70..7f and 0f 80..8f the low half tells the condition; nothing for jumps on a counter.
std::optional<uint8_t> condition_of(const cs_insn& insn) {
  const uint8_t* opcode = insn.detail->x86.opcode;
  if (insn.id == X86_INS_JMP) return UPROBE_ALWAYS;
  if (opcode[0] >= 0x70 && opcode[0] <= 0x7f) return opcode[0] & 15;
  if (opcode[0] == 0x0f && opcode[1] >= 0x80 && opcode[1] <= 0x8f) return opcode[1] & 15;
  return std::nullopt;
}

// One function at a time: every part is read, parts that jumps show are read as well.
class Reading {
 public:
  Reading(csh handle, object::ElfFile& file, FunctionCode& code, const FindColdPart& find_cold)
      : handle_(handle), file_(file), code_(code), find_cold_(find_cold) {}

  Result<std::vector<uprobe_site>> read() {
    TRY(read_part(code_.hot));
    for (size_t i = 0; i < code_.cold.size(); i++) TRY(read_part(CodePart(code_.cold[i])));
    std::ranges::sort(starts_);
    for (uint64_t target : targets_)
      if (!std::ranges::binary_search(starts_, target))
        return fail(fmt::format("a jump to {:#x} goes between two instructions", target));
    return std::move(sites_);
  }

 private:
  Result<void> read_part(CodePart part) {
    if (part.end <= part.start || part.end - part.start > kMaxCode) return fail(fmt::format("{} bytes of code", part.end - part.start));
    std::vector<std::byte> bytes(part.end - part.start);
    TRY(file_.read_at_svma(part.start, bytes));
    const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
    size_t left = bytes.size();
    uint64_t address = part.start;
    cs_insn* insn = cs_malloc(handle_);
    if (insn == nullptr) return fail("no memory to disassemble");
    Result<void> result;
    while (left > 0 && result) {
      starts_.push_back(address);
      if (left >= sizeof kEndBranch && memcmp(at, kEndBranch, sizeof kEndBranch) == 0) {
        at += sizeof kEndBranch;
        left -= sizeof kEndBranch;
        address += sizeof kEndBranch;
      } else if (cs_disasm_iter(handle_, &at, &left, &address, insn)) {
        result = look_at(*insn, part);
      } else {
        result = fail(fmt::format("the bytes at {:#x} are no known instruction", address));
      }
    }
    cs_free(insn, 1);
    return result;
  }

  Result<void> look_at(const cs_insn& insn, const CodePart& part) {
    if (is_return(insn)) {
      add(insn, part, {});
      return {};
    }
    if (!is_jump(insn) || insn.detail->x86.op_count == 0) return {};
    const cs_x86_op& operand = insn.detail->x86.operands[0];
    if (operand.type == X86_OP_IMM) return direct_jump(insn, part, static_cast<uint64_t>(operand.imm));
    return indirect_jump(insn, part, operand);
  }

  bool is_own(uint64_t address) const {
    return code_.hot.holds(address) || std::ranges::any_of(code_.cold, [&](const CodePart& cold) { return cold.holds(address); });
  }

  Result<void> direct_jump(const cs_insn& insn, const CodePart& part, uint64_t target) {
    const bool is_entry = std::ranges::find(code_.entries, target) != code_.entries.end();
    if (!is_entry && !is_own(target)) {
      const auto cold = find_cold_(target);
      if (cold && code_.cold.size() < kMaxParts) code_.cold.push_back(*cold);
    }
    if (is_own(target)) targets_.push_back(target);
    if (is_own(target) && !is_entry) return {};
    const auto condition = condition_of(insn);
    if (!condition) return fail(fmt::format("the jump at {:#x} counts", insn.address));
    add(insn, part, {.kind = is_entry ? uint8_t{UPROBE_CONTINUE} : uint8_t{UPROBE_EXIT}, .condition = *condition});
    return {};
  }

  Result<void> indirect_jump(const cs_insn& insn, const CodePart& part, const cs_x86_op& operand) {
    Jump jump;
    const bool is_memory = operand.type == X86_OP_MEM;
    if (is_memory && operand.mem.base == X86_REG_RIP) {  // a pointer to another function: tables have an index
      add(insn, part, jump);
      return {};
    }
    const auto base = number_of(is_memory ? static_cast<unsigned>(operand.mem.base) : static_cast<unsigned>(operand.reg));
    const auto index = number_of(is_memory ? static_cast<unsigned>(operand.mem.index) : unsigned{X86_REG_INVALID});
    if (!base || !index || (is_memory && operand.mem.segment != X86_REG_INVALID && operand.mem.segment != X86_REG_DS))
      return fail(fmt::format("where the jump at {:#x} goes cannot be followed", insn.address));
    jump.jump = is_memory ? UPROBE_BY_MEMORY : UPROBE_BY_REGISTER;
    jump.base = *base;
    jump.index = *index;
    jump.scale = is_memory ? static_cast<uint8_t>(operand.mem.scale) : 0;
    jump.displacement = is_memory ? operand.mem.disp : 0;
    add(insn, part, jump);
    return {};
  }

  struct Jump {
    uint8_t kind = UPROBE_EXIT, condition = UPROBE_ALWAYS, jump = UPROBE_FIXED;
    uint8_t base = UPROBE_NO_REGISTER, index = UPROBE_NO_REGISTER, scale = 0;
    int64_t displacement = 0;
  };
  void add(const cs_insn& insn, const CodePart& part, const Jump& jump) {
    uprobe_site site{};
    site.address = insn.address;
    site.start = code_.hot.start;
    site.end = code_.hot.end;
    const CodePart cold = part.start != code_.hot.start ? part : code_.cold.empty() ? CodePart{} : code_.cold.front();
    site.cold_start = cold.start;
    site.cold_end = cold.end;
    site.displacement = jump.displacement;
    site.kind = jump.kind;
    site.condition = jump.condition;
    site.jump = jump.jump;
    site.base = jump.base;
    site.index = jump.index;
    site.scale = jump.scale;
    sites_.push_back(site);
  }

  csh handle_;
  object::ElfFile& file_;
  FunctionCode& code_;
  const FindColdPart& find_cold_;
  std::vector<uprobe_site> sites_;
  std::vector<uint64_t> starts_, targets_;
};

bool is_push(std::span<const std::byte> bytes) {
  auto at = [&](size_t i) { return i < bytes.size() ? static_cast<unsigned>(bytes[i]) : 0; };
  const unsigned first = at(0) == 0x41 ? at(1) : at(0);
  return first >= 0x50 && first <= 0x57;
}

// What the kernel does itself instead of running a copy of it (arch/x86/kernel/uprobes.c).
bool is_emulated(std::span<const std::byte> bytes) {
  if (is_push(bytes)) return true;
  const unsigned first = bytes.empty() ? 0 : static_cast<unsigned>(bytes[0]);
  const unsigned second = bytes.size() < 2 ? 0 : static_cast<unsigned>(bytes[1]);
  return first == 0x90 || first == 0xe8 || first == 0xe9 || first == 0xeb || (first >= 0x70 && first <= 0x7f) ||
         (first == 0x0f && second >= 0x80 && second <= 0x8f);
}

}  // namespace

Result<ExitFinder> ExitFinder::open(uint16_t machine) {
  if (machine != EM_X86_64) return fail(fmt::format("exits of functions are found on x86-64 only, not on machine {}", machine));
  csh handle = 0;
  if (const cs_err error = cs_open(CS_ARCH_X86, CS_MODE_64, &handle); error != CS_ERR_OK)
    return fail(fmt::format("the disassembler: {}", cs_strerror(error)));
  cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
  return ExitFinder(handle);
}

ExitFinder::ExitFinder(ExitFinder&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}

ExitFinder::~ExitFinder() {
  csh handle = handle_;
  if (handle != 0) cs_close(&handle);
}

Result<std::vector<uprobe_site>> ExitFinder::find(object::ElfFile& file, FunctionCode& code, const FindColdPart& find_cold) {
  return Reading(handle_, file, code, find_cold).read();
}

EntryPlace entry_place(std::span<const std::byte> first_bytes, uint64_t address) {
  const bool is_marked = first_bytes.size() > sizeof kEndBranch && memcmp(first_bytes.data(), kEndBranch, sizeof kEndBranch) == 0;
  // No loop of the function begins with a push, so nothing but a call gets there.
  if (is_marked && is_push(first_bytes.subspan(sizeof kEndBranch))) return {address + sizeof kEndBranch, false};
  return {address, !is_emulated(first_bytes)};
}

}  // namespace cprof::uprobe
