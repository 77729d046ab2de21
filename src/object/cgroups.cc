#include "object/cgroups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/container_name.h"
#include "base/file.h"

namespace cprof::object {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostTextBytes = 1 << 20;
constexpr size_t kMostEntries = 2'000'000;  // of a cgroup file system; each group has some 50
constexpr size_t kMostNamed = 8;            // in a message

// Calls take(line) for each.
template <typename Take>
void each_line(std::string_view text, Take&& take) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

bool has_option(std::string_view options, std::string_view wanted) {
  return ("," + std::string(options) + ",").contains("," + std::string(wanted) + ",");
}

bool is_group(const std::string& directory) {
  std::error_code error;
  return fs::exists(directory + "/cgroup.procs", error);
}

// The topmost directories of containers below the root, by the whole id or name.
void find_containers(const std::string& root, std::map<std::string, std::string>& found) {
  std::error_code error;
  auto at = fs::recursive_directory_iterator(root, fs::directory_options::skip_permission_denied, error);
  for (size_t seen = 0; !error && at != fs::recursive_directory_iterator() && seen < kMostEntries; at.increment(error), ++seen) {
    std::error_code ignored;
    if (!at->is_directory(ignored) || at->is_symlink(ignored)) continue;
    const std::string path = at->path().string();
    const std::string id = container_id_of(std::string_view(path).substr(root.size()));
    if (id.empty()) continue;
    std::string& known = found[id];
    if (known.empty() || path.size() < known.size()) known = path;
  }
}

std::string list_of(const std::map<std::string, std::string>& containers) {
  std::vector<std::string> names;
  for (const auto& [id, path] : containers) names.push_back(container_of(path));
  if (names.empty()) return "there are none";
  const size_t more = names.size() > kMostNamed ? names.size() - kMostNamed : 0;
  names.resize(names.size() - more);
  return fmt::format("there is: {}{}", fmt::join(names, ", "), more ? fmt::format(" and {} more", more) : "");
}

}  // namespace

std::string cgroup_in(std::string_view text) {
  std::string_view unified, first, containers;
  each_line(text, [&](std::string_view line) {
    const size_t number_end = line.find(':'), names_end = line.find(':', number_end == line.npos ? line.npos : number_end + 1);
    if (names_end == line.npos) return;
    const std::string_view path = line.substr(names_end + 1);
    if (first.empty()) first = path;
    if (line.starts_with("0::")) unified = path;
    if (containers.empty() && !container_id_of(path).empty()) containers = path;
  });
  return std::string(!containers.empty() ? containers : !unified.empty() ? unified : first);
}

Result<std::string> read_cgroup(int32_t pid) {
  return cgroup_in(TRY(read_text_file(fmt::format("/proc/{}/cgroup", pid), kMostTextBytes)));
}

std::vector<std::string> cgroup_roots_in(std::string_view mounts) {
  std::vector<std::string> events, unified;
  each_line(mounts, [&](std::string_view line) {
    const auto words = words_of(line);  // device, where, type, options
    if (words.size() < 4) return;
    if (words[2] == "cgroup2") unified.emplace_back(words[1]);
    if (words[2] == "cgroup" && has_option(words[3], "perf_event")) events.emplace_back(words[1]);
  });
  events.insert(events.end(), unified.begin(), unified.end());
  return events;
}

std::vector<std::string> cgroup_roots() {
  auto mounts = read_text_file("/proc/mounts", kMostTextBytes);
  return mounts ? cgroup_roots_in(*mounts) : std::vector<std::string>();
}

Result<std::string> find_cgroup(const std::string& path, const std::vector<std::string>& roots) {
  if (path.starts_with('/') && is_group(path)) return path;
  for (const std::string& root : roots) {
    std::string below = (fs::path(root) / fs::path(path).relative_path()).string();
    if (is_group(below)) return below;
  }
  return fail(roots.empty() ? fmt::format("cgroup {}: no cgroup file system is mounted; mount -t cgroup2 none /sys/fs/cgroup", path)
                            : fmt::format("cgroup {}: no such group below {}", path, fmt::join(roots, " or ")),
              ENOENT);
}

Result<std::string> find_container(const std::string& id_or_name, const std::vector<std::string>& roots) {
  std::map<std::string, std::string> known, matching;
  for (const std::string& root : roots) {
    known.clear();
    find_containers(root, known);
    for (const auto& [id, path] : known)
      if (is_in_container(path, id_or_name)) matching.emplace(id, path);
    if (!matching.empty()) break;
  }
  if (matching.size() == 1) return matching.begin()->second;
  if (matching.size() > 1) return fail(fmt::format("--container {}: more than one; {}", id_or_name, list_of(matching)), EINVAL);
  return fail(fmt::format("--container {}: no container of this id or name has a cgroup here; {}", id_or_name, list_of(known)), ENOENT);
}

}  // namespace cprof::object
