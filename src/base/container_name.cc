#include "base/container_name.h"

#include <algorithm>

#include "base/ascii.h"

namespace cprof {
namespace {

constexpr size_t kIdDigits = 64, kTaskDigits = 32, kShownDigits = 12, kLeastDigits = 4;

bool is_hex(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return hex_digit(c) >= 0; });
}
bool is_decimal(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

std::string_view without(std::string_view text, std::string_view prefix, std::string_view suffix) {
  const bool has_both = text.size() >= prefix.size() + suffix.size() && text.starts_with(prefix) && text.ends_with(suffix);
  return has_both ? text.substr(prefix.size(), text.size() - prefix.size() - suffix.size()) : std::string_view();
}

// systemd.unit(5): "web\x2d1" is web-1.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text.substr(i, 2) == "\\x" && is_hex(text.substr(i + 2, 2)) && text.size() >= i + 4;
    plain += is_escape ? static_cast<char>(hex_digit(text[i + 2]) << 4 | hex_digit(text[i + 3])) : text[i];
    if (is_escape) i += 3;
  }
  return plain;
}

// "docker-ID.scope", "cri-containerd-ID.scope", "libpod-ID", "ID"; of Amazon's tasks "ID-NUMBER". Monitors of containers
// ("libpod-conmon-ID.scope") run outside of them.
std::string_view id_in(std::string_view part) {
  if (part.ends_with(".scope")) part.remove_suffix(6);
  const size_t dash = part.rfind('-');
  const std::string_view before = part.substr(0, dash == part.npos ? 0 : dash), last = part.substr(dash == part.npos ? 0 : dash + 1);
  if (last.size() == kIdDigits && is_hex(last)) return before.ends_with("conmon") ? std::string_view() : last;
  const bool is_task = before.size() == kTaskDigits && is_hex(before) && is_decimal(last);
  return is_task ? before : std::string_view();
}

std::string name_in(std::string_view part, std::string_view parent) {
  if (auto name = without(part, "machine-", ".scope"); !name.empty()) return unescaped(name);
  if (auto name = without(part, "systemd-nspawn@", ".service"); !name.empty()) return unescaped(name);
  if (auto name = without(part, "lxc.payload.", ""); !name.empty()) return std::string(name);
  return parent == "lxc" || parent == "lxc.payload" ? std::string(part) : std::string();
}

}  // namespace

std::string container_id_of(std::string_view cgroup) {
  while (!cgroup.empty()) {
    const size_t slash = cgroup.rfind('/');
    const std::string_view part = cgroup.substr(slash == cgroup.npos ? 0 : slash + 1);
    cgroup = cgroup.substr(0, slash == cgroup.npos ? 0 : slash);
    if (const std::string_view id = id_in(part); !id.empty()) return std::string(id);
    if (std::string name = name_in(part, cgroup.substr(cgroup.rfind('/') + 1)); !name.empty()) return name;
  }
  return {};
}

std::string container_of(std::string_view cgroup) {
  std::string id = container_id_of(cgroup);
  if (id.size() >= kTaskDigits && is_hex(id)) id.resize(kShownDigits);
  return id;
}

bool is_in_container(std::string_view cgroup, std::string_view id_or_name) {
  const std::string id = container_id_of(cgroup);
  if (id.empty() || id_or_name.empty()) return false;
  return id == id_or_name || (id_or_name.size() >= kLeastDigits && is_hex(id_or_name) && id.size() >= kTaskDigits &&
                              is_hex(id) && id.starts_with(id_or_name));
}

}  // namespace cprof
