#include "serve/recent_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/own_folder.h"

namespace cprof::serve {
namespace {

constexpr size_t kMostEntries = 10;
constexpr size_t kMostBytes = 64 * 1024;

std::optional<RecentFiles::Entry> entry_of(const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return std::nullopt;
  return RecentFiles::Entry{path, static_cast<uint64_t>(st.st_size), st.st_mtim.tv_sec};
}

std::string absolute(std::string_view path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return error ? "" : whole.lexically_normal().string();
}

Result<void> write_list(const std::string& list, std::string_view text) {
  OutputFile out = TRY(OutputFile::create(list));
  if (out.regular_fd() >= 0 && fchmod(out.regular_fd(), 0600) != 0) return fail_errno(list);
  TRY(out.write(text));
  return out.commit();
}

}  // namespace

std::string RecentFiles::default_list() {
  const std::string folder = state_folder();
  return folder.empty() ? "" : folder + "/recent_files";
}

std::vector<std::string> RecentFiles::paths() const {
  std::vector<std::string> found;
  const auto text = list_.empty() ? Result<std::string>("") : read_text_file(list_, kMostBytes);
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.starts_with('/')) found.emplace_back(line);
  }
  return found;
}

std::vector<RecentFiles::Entry> RecentFiles::entries() const {
  std::vector<Entry> found;
  for (const std::string& path : paths())
    if (auto entry = entry_of(path)) found.push_back(std::move(*entry));
  return found;
}

// A list that cannot be written is no reason to show nothing: the file that was asked for is open.
void RecentFiles::add(std::string_view path) {
  const std::string added = absolute(path);
  if (list_.empty() || added.find('\n') != std::string::npos || !entry_of(added)) return;
  std::string text = added + "\n";
  size_t kept = 1;
  for (const std::string& known : paths())
    if (known != added && kept++ < kMostEntries) text += known + "\n";
  (void)write_list(list_, text);
}

Result<void> RecentFiles::forget() {
  if (!list_.empty() && ::unlink(list_.c_str()) != 0 && errno != ENOENT) return fail_errno(list_);
  return {};
}

}  // namespace cprof::serve
