#include "symbolize/plt_stubs.h"

#include <cstring>
#include <unordered_map>

#include "base/byte_reader.h"

namespace cprof::symbolize {
namespace {

constexpr uint64_t kStubSize = 16;

using Slots = std::unordered_map<uint64_t, uint32_t>;  // address in the global offset table -> symbol number

void add_slots(std::span<const std::byte> relocations, Slots& slots) {
  for (size_t at = 0; at + sizeof(Elf64_Rela) <= relocations.size(); at += sizeof(Elf64_Rela)) {
    Elf64_Rela rela;
    memcpy(&rela, relocations.data() + at, sizeof rela);
    if (uint32_t symbol = ELF64_R_SYM(rela.r_info)) slots.emplace(rela.r_offset, symbol);
  }
}

// [endbr64] [bnd] jmp *slot(%rip)
uint64_t x86_64_slot(std::span<const std::byte> stub, uint64_t address) {
  for (size_t at = 0; at + 6 <= stub.size() && at <= 5; at++) {
    if (stub[at] != std::byte{0xff} || stub[at + 1] != std::byte{0x25}) continue;
    int32_t displacement;
    memcpy(&displacement, stub.data() + at + 2, sizeof displacement);
    return address + at + 6 + static_cast<uint64_t>(int64_t{displacement});
  }
  return 0;
}

// [bti] adrp x16, page; ldr x17, [x16, #offset]
uint64_t aarch64_slot(std::span<const std::byte> stub, uint64_t address) {
  uint32_t words[4];
  if (stub.size() < sizeof words) return 0;
  memcpy(words, stub.data(), sizeof words);
  for (unsigned i = 0; i < 3; i++) {
    bool adrp_x16 = (words[i] & 0x9f00001f) == 0x90000010, load_x17 = (words[i + 1] & 0xffc003ff) == 0xf9400211;
    if (!adrp_x16 || !load_x17) continue;
    uint64_t pages = (words[i] >> 29 & 3) | uint64_t{words[i] >> 5 & 0x7ffff} << 2;
    auto page_offset = static_cast<uint64_t>(static_cast<int64_t>(pages << 43) >> 31);  // 21 bits, signed, times 4096
    return ((address + 4 * i) & ~uint64_t{4095}) + page_offset + (words[i + 1] >> 10 & 0xfff) * 8;
  }
  return 0;
}

class DynamicNames {
 public:
  explicit DynamicNames(object::ElfFile& file) {
    auto symbols = file.section_data(".dynsym"), names = file.section_data(".dynstr");
    if (symbols && names) symbols_ = *symbols, names_ = *names;
  }
  std::string_view name(uint32_t number) const {
    ByteReader symbols(symbols_), names(names_);
    symbols.seek(uint64_t{number} * sizeof(Elf64_Sym));
    names.seek(symbols.u32());
    return symbols.ok() ? names.cstring() : std::string_view{};
  }

 private:
  std::span<const std::byte> symbols_, names_;
};

}  // namespace

std::vector<PltStub> find_plt_stubs(object::ElfFile& file) {
  std::vector<PltStub> stubs;
  Slots slots;
  for (const char* name : {".rela.plt", ".rela.dyn"}) {
    // The second is megabytes in a big library, and only .plt.got's slots are among them.
    if (name == std::string_view(".rela.dyn") && !file.find_section(".plt.got")) continue;
    if (auto relocations = file.section_data(name)) add_slots(*relocations, slots);
  }
  if (slots.empty()) return stubs;
  DynamicNames names(file);
  auto slot_of = file.machine() == EM_AARCH64 ? aarch64_slot : x86_64_slot;
  for (const char* section_name : {".plt", ".plt.sec", ".plt.got"}) {
    const object::Section* section = file.find_section(section_name);
    auto code = section ? file.section_data(*section) : std::span<const std::byte>();
    if (!code || code->empty()) continue;
    uint64_t size = std::string_view(section_name) == ".plt.got" && section->entry_size == 8 ? 8 : kStubSize;
    for (uint64_t at = 0; at + size <= code->size(); at += size) {
      auto slot = slots.find(slot_of(code->subspan(at, size), section->vaddr + at));
      std::string_view callee = slot != slots.end() ? names.name(slot->second) : std::string_view{};
      if (!callee.empty()) stubs.push_back({section->vaddr + at, size, callee});
    }
  }
  return stubs;
}

}  // namespace cprof::symbolize
