#include "pipeline/call_check.h"

#include <array>
#include <cstring>

namespace cprof::pipeline {
namespace {

uint8_t at_end(std::span<const std::byte> bytes, size_t distance) {
  return static_cast<uint8_t>(bytes[bytes.size() - distance]);
}

// Length of "call r/m64" (FF /2) that starts distance bytes before the end, 0 when it is none.
size_t indirect_call_length(std::span<const std::byte> before, size_t distance) {
  if (distance < 2 || at_end(before, distance) != 0xff) return 0;
  uint8_t modrm = at_end(before, distance - 1);
  if ((modrm >> 3 & 7) != 2) return 0;
  uint8_t mode = modrm >> 6, rm = modrm & 7;
  if (mode == 3) return 2;
  size_t length = 2 + (rm == 4 ? 1 : 0);
  if (mode == 1) return length + 1;
  if (mode == 2) return length + 4;
  if (rm == 5) return length + 4;  // rip-relative
  if (rm == 4 && distance >= 3 && (at_end(before, distance - 2) & 7) == 5) return length + 4;  // disp32 without base
  return length;
}

bool ends_with_x86_call(std::span<const std::byte> before) {
  if (before.size() >= 5 && at_end(before, 5) == 0xe8) return true;
  for (size_t distance = 2; distance <= 7 && distance <= before.size(); distance++)
    if (indirect_call_length(before, distance) == distance) return true;
  return false;
}

bool ends_with_arm_call(std::span<const std::byte> before) {
  if (before.size() < 4) return false;
  uint32_t instruction;
  memcpy(&instruction, before.data() + before.size() - 4, 4);
  bool is_bl = instruction >> 26 == 0x25;
  bool is_blr = (instruction & 0xfffffc1f) == 0xd63f0000;
  bool is_blr_authenticated = (instruction & 0xfefff800) == 0xd63f0800;
  return is_bl || is_blr || is_blr_authenticated;
}

}  // namespace

bool ends_with_call(std::span<const std::byte> before, event::Arch arch) {
  return arch == event::Arch::kAarch64 ? ends_with_arm_call(before) : ends_with_x86_call(before);
}

bool follows_call(object::ElfFile& elf, uint64_t svma, event::Arch arch) {
  std::array<std::byte, 8> before;
  return svma >= before.size() && elf.read_at_svma(svma - before.size(), before) && ends_with_call(before, arch);
}

}  // namespace cprof::pipeline
