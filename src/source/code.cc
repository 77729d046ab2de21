#include "source/code.h"

#include <capstone/capstone.h>
#include <fmt/format.h>

#include <algorithm>

#include "symbolize/sandbox.h"

namespace cprof::source {
namespace {

constexpr uint64_t kMaxCode = 1 << 20;

class Disassembler {
 public:
  static Result<Disassembler> open(uint16_t machine) {
    const bool is_arm = machine == EM_AARCH64;
    if (!is_arm && machine != EM_X86_64) return fail(fmt::format("no disassembler for machine {}", machine));
    Disassembler made;
    const cs_err error = cs_open(is_arm ? CS_ARCH_ARM64 : CS_ARCH_X86, is_arm ? CS_MODE_ARM : CS_MODE_64, &made.handle_);
    if (error != CS_ERR_OK) return fail(fmt::format("the disassembler: {}", cs_strerror(error)));
    if (!is_arm) cs_option(made.handle_, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
    cs_option(made.handle_, CS_OPT_SKIPDATA, CS_OPT_ON);
    return made;
  }
  Disassembler(Disassembler&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
  Disassembler& operator=(Disassembler&&) = delete;
  ~Disassembler() {
    if (handle_ != 0) cs_close(&handle_);
  }

  std::vector<Instruction> all(std::span<const std::byte> bytes, uint64_t address) const {
    std::vector<Instruction> list;
    cs_insn* insn = cs_malloc(handle_);
    if (insn == nullptr) return list;
    const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
    size_t left = bytes.size();
    while (left > 0 && cs_disasm_iter(handle_, &at, &left, &address, insn))
      list.push_back({insn->address, insn->size, insn->op_str[0] != 0 ? fmt::format("{:<7} {}", insn->mnemonic, insn->op_str)
                                                                       : std::string(insn->mnemonic)});
    cs_free(insn, 1);
    return list;
  }

 private:
  Disassembler() = default;
  csh handle_ = 0;
};

SourcePlace place_of(const symbolize::SourceLine& line) {
  return {std::string(line.name), std::string(line.file), line.line};
}

void take_places(CodeLine& line, const symbolize::Symbolized& found) {
  for (const symbolize::SourceLine& source : found.lines) line.places.push_back(place_of(source));
}

}  // namespace

Result<std::vector<Instruction>> disassemble(object::ElfFile& file, uint64_t start, uint64_t end) {
  if (end <= start || end - start > kMaxCode)
    return fail(fmt::format("{}: a function of {} bytes at {:#x} is not disassembled", file.name(), end - start, start));
  const Disassembler disassembler = TRY(Disassembler::open(file.machine()));
  std::vector<std::byte> bytes(end - start);
  TRY(file.read_at_svma(start, bytes));
  return disassembler.all(bytes, start);
}

std::optional<CodeRange> function_at(object::ElfFile& file, object::ElfFile* debug, uint64_t address) {
  CodeRange best;
  uint64_t next = UINT64_MAX;
  for (object::ElfFile* from : {debug, &file}) {
    if (from == nullptr) continue;
    const auto symbols = from->symbols();
    if (!symbols) continue;
    for (const object::Symbol& symbol : *symbols) {
      if (symbol.address > address) {
        next = std::min(next, symbol.address);
        continue;
      }
      const bool holds = symbol.size == 0 || address - symbol.address < symbol.size;
      if (!holds || symbol.address < best.start || (symbol.address == best.start && best.end != 0 && symbol.size == 0)) continue;
      best = {symbol.address, symbol.size == 0 ? 0 : symbol.address + symbol.size};
    }
  }
  if (best.start == 0) return std::nullopt;
  if (best.end == 0) best.end = next;
  for (const object::Segment& segment : file.segments())
    if (best.start >= segment.vaddr && best.start - segment.vaddr < segment.memory_size)
      best.end = std::min(best.end, segment.vaddr + segment.file_size);
  return address < best.end ? std::optional(best) : std::nullopt;
}

Result<std::vector<CodeLine>> code_of(std::shared_ptr<object::ElfFile> file, std::shared_ptr<object::ElfFile> debug,
                                      CodeRange range, symbolize::DemangleStyle style, Diagnostics& diagnostics) {
  std::vector<CodeLine> lines;
  std::vector<uint64_t> addresses;
  for (Instruction& instruction : TRY(disassemble(*file, range.start, range.end))) {
    addresses.push_back(instruction.address);
    lines.push_back({std::move(instruction), {}});
  }
  symbolize::Demangler demangler(style);
  symbolize::ModuleSymbols symbols(file, debug, demangler);
  if (!symbolize::needs_sandbox(file.get(), debug.get())) {
    for (size_t i = 0; i < lines.size(); ++i) take_places(lines[i], symbols.find(addresses[i], diagnostics));
    return lines;
  }
  const auto batch = TRY(symbolize::find_in_sandbox(symbols, addresses, diagnostics));
  for (size_t i = 0; i < lines.size(); ++i) take_places(lines[i], batch.results[i]);
  return lines;
}

}  // namespace cprof::source
