#include "profile/frame_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"

namespace cprof::profile {
namespace {

std::string_view without_brackets(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') return text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

std::string_view base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash + 1 == path.size()) return path;
  return path.substr(slash + 1);
}

std::string stand_in_name(const Profile& profile, const Location& location) {
  std::string_view module;
  if (location.mapping.valid())
    module = without_brackets(base_name(profile.text(profile.mappings[location.mapping.index()].path)));
  const bool in_file = location.kind != FrameKind::kKernel && location.file_address != 0;
  // Where it was called, as pprof writes it: the same code has one name whatever file it went through.
  const uint64_t place = in_file ? location.file_address : location.address;
  const uint64_t address = place - (location.is_return_address && place > 0 ? 1 : 0);
  if (module.empty() && location.kind == FrameKind::kKernel) module = "kernel";
  if (!module.empty()) return fmt::format("[{}+{:#x}]", module, address);
  if (address != 0) return fmt::format("[{:#x}]", address);
  return std::string(kUnknownFrame);
}

bool is_stand_in(std::string_view name) {
  if (name == kUnknownFrame) return true;
  if (name.size() < 5 || name.front() != '[' || name.back() != ']') return false;
  const size_t hex = name.rfind("0x");
  if (hex == std::string_view::npos || (hex != 1 && name[hex - 1] != '+')) return false;
  const std::string_view digits = name.substr(hex + 2, name.size() - hex - 3);
  return !digits.empty() && std::ranges::all_of(digits, [](char c) { return hex_digit(c) >= 0; });
}

bool is_python_name(std::string_view name) {
  constexpr std::string_view kPrefix = "py::";
  if (!name.starts_with(kPrefix)) return false;
  const size_t colon = name.find(':', kPrefix.size());
  return colon != name.npos && colon > kPrefix.size() && colon + 1 < name.size() && name[colon + 1] != ':';
}

}  // namespace cprof::profile
