#include "format/frame_text.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

using profile::FrameKind;

constexpr std::array<std::string_view, 4> kKernelModuleEndings = {".ko", ".ko.xz", ".ko.gz", ".ko.zst"};
// Regions in brackets that are user space; any other lower-case name in brackets is a kernel module.
constexpr std::array<std::string_view, 8> kUserRegions = {"vdso", "vsyscall", "vvar", "heap",
                                                          "stack", "user", "anon", "uprobes"};

bool is_module_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; }

FrameKind kind_of_region(std::string_view path) {
  if (path.starts_with("[JIT") || path == "[jit]") return FrameKind::kJit;
  if (path == "[interpreted]") return FrameKind::kInterpreted;
  if (path == profile::kUnknownFrame) return FrameKind::kUnknown;
  if (path.starts_with("[kernel") || path.starts_with("[guest.kernel") || path.starts_with("[bpf_")) return FrameKind::kKernel;
  std::string_view inside = path.substr(1, path.size() - 2);
  if (inside.empty() || !std::ranges::all_of(inside, is_module_letter)) return FrameKind::kUser;
  return std::ranges::find(kUserRegions, inside) == kUserRegions.end() ? FrameKind::kKernel : FrameKind::kUser;
}

// "perf-10.map", "jitted-10-3.so"
bool is_jit_file(std::string_view base) {
  auto is_number_between = [&](std::string_view prefix, std::string_view ending) {
    if (base.size() <= prefix.size() + ending.size() || !base.starts_with(prefix) || !base.ends_with(ending)) return false;
    auto middle = base.substr(prefix.size(), base.size() - prefix.size() - ending.size());
    return std::ranges::all_of(middle, [](char c) { return is_digit(c) || c == '-'; });
  };
  return is_number_between("perf-", ".map") || is_number_between("jitted-", ".so");
}

}  // namespace

FrameKind kind_of_module(std::string_view path) {
  if (path.size() > 2 && path.front() == '[' && path.back() != '/') return kind_of_region(path);
  std::string_view base = profile::base_name(path);
  if (base == "vmlinux" || base.starts_with("vmlinux-")) return FrameKind::kKernel;
  for (std::string_view ending : kKernelModuleEndings)
    if (base.size() > ending.size() && base.ends_with(ending)) return FrameKind::kKernel;
  return is_jit_file(base) ? FrameKind::kJit : FrameKind::kUser;
}

void append_clean(std::string& out, std::string_view text, bool is_frame) {
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
    out += is_frame && c == ';' ? ':' : c;
  }
}

}  // namespace cprof::format
