#include "call_site.h"

#include <algorithm>

namespace cprof::oracle {
namespace {

// Length of "ff /2" (near indirect call) with this ModRM (and SIB), without prefixes; 0 when it is another instruction.
size_t indirect_call_length(std::span<const uint8_t> code) {
  if (code.size() < 2 || code[0] != 0xff || (code[1] >> 3 & 7) != 2) return 0;
  unsigned mod = code[1] >> 6, rm = code[1] & 7;
  if (mod == 3) return 2;
  bool has_sib = rm == 4;
  if (has_sib && code.size() < 3) return 0;
  size_t displacement = mod == 1 ? 1 : mod == 2 ? 4 : 0;
  if (mod == 0 && (rm == 5 || (has_sib && (code[2] & 7) == 5))) displacement = 4;
  return 2 + has_sib + displacement;
}

}  // namespace

bool ends_with_call(std::span<const uint8_t> before) {
  size_t size = before.size();
  if (size >= 5 && before[size - 5] == 0xe8) return true;
  for (size_t length = 2; length <= 7 && length <= size; ++length) {
    if (indirect_call_length(before.subspan(size - length)) == length) return true;
  }
  return false;
}

bool is_signal_return_stub(std::span<const uint8_t> at) {
  static constexpr uint8_t kStub[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};  // mov $15,%rax; syscall
  return at.size() >= sizeof kStub && std::equal(std::begin(kStub), std::end(kStub), at.begin());
}

}  // namespace cprof::oracle
