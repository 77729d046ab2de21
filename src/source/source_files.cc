#include "source/source_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/fd.h"
#include "base/file.h"

namespace cprof::source {
namespace {

constexpr size_t kMaxBytes = 64 << 20;

// A FIFO must not be waited for, a device not be read.
Result<std::shared_ptr<const SourceText>> read_source(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return fail_errno(path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return fail_errno(path);
  if (!S_ISREG(info.st_mode)) return fail(fmt::format("{}: not a regular file", path), EINVAL);
  const auto bytes = TRY(read_all(fd.get(), kMaxBytes, path));
  const int64_t changed = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return std::make_shared<const SourceText>(path, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                                            changed);
}

bool climbs(std::string_view path) { return path == ".." || path.starts_with("../") || path.find("/../") != path.npos; }

}  // namespace

SourceText::SourceText(std::string path, std::string text, int64_t changed_ns)
    : path_(std::move(path)), text_(std::move(text)), changed_ns_(changed_ns) {
  for (size_t at = 0; at < text_.size();) {
    starts_.push_back(at);
    const size_t end = text_.find('\n', at);
    if (end == text_.npos) break;
    at = end + 1;
  }
}

std::string_view SourceText::line(size_t number) const {
  if (number == 0 || number > starts_.size()) return {};
  const size_t start = starts_[number - 1];
  const size_t end = number < starts_.size() ? starts_[number] - 1 : text_.size();
  std::string_view line = std::string_view(text_).substr(start, end - start);
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Result<std::shared_ptr<const SourceText>> SourceFiles::find(std::string_view name) {
  const auto known = known_.find(name);
  if (known != known_.end()) return known->second;
  auto found = name.empty() ? fail("its source file is not known; build it with -g") : look_for(std::string(name));
  return known_.emplace(std::string(name), std::move(found)).first->second;
}

Result<std::shared_ptr<const SourceText>> SourceFiles::look_for(const std::string& name) const {
  for (const std::string& root : roots_) {
    for (std::string_view end = name; !end.empty();) {
      const size_t first = end.find_first_not_of('/');
      if (first == end.npos) break;
      end.remove_prefix(first);
      if (!climbs(end))
        if (auto found = read_source(fmt::format("{}/{}", root, end))) return found;
      end.remove_prefix(std::min(end.find('/'), end.size()));
    }
  }
  auto found = read_source(name);
  if (!found && found.error().code == ENOENT)
    return fail(fmt::format("{}: the source file is not there; --source-path tells where it is", name), ENOENT);
  return found;
}

}  // namespace cprof::source
