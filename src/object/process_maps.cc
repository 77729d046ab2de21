#include <fmt/format.h>

#include <charconv>

#include "base/file.h"
#include "object/process_files.h"

namespace cprof::object {
namespace {

constexpr size_t kMaxMapsBytes = 256 << 20;
constexpr std::string_view kDeletedMark = " (deleted)";

// Takes fields off the front of a line; after a miss ok() stays false.
class LineFields {
 public:
  explicit LineFields(std::string_view line) : left_(line) {}

  template <typename T>
  T number(int base) {
    T value = 0;
    auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), value, base);
    if (error != std::errc()) ok_ = false;
    left_.remove_prefix(static_cast<size_t>(end - left_.data()));
    return value;
  }
  void expect(char c) {
    if (left_.starts_with(c))
      left_.remove_prefix(1);
    else
      ok_ = false;
  }
  std::string_view take(size_t count) {
    if (left_.size() < count) ok_ = false, left_ = {};
    std::string_view text = left_.substr(0, count);
    left_.remove_prefix(text.size());
    return text;
  }
  void skip_spaces() { left_.remove_prefix(std::min(left_.find_first_not_of(' '), left_.size())); }
  std::string_view rest() const { return left_; }
  bool ok() const { return ok_; }

 private:
  std::string_view left_;
  bool ok_ = true;
};

// The kernel escapes the newline, and only it, as \012.
void assign_unescaped(std::string_view text, std::string* into) {
  into->clear();
  for (size_t at = 0; (at = text.find("\\012")) != text.npos; text.remove_prefix(at + 4)) {
    into->append(text.substr(0, at));
    into->push_back('\n');
  }
  into->append(text);
}

bool parse_line(std::string_view line, MapsEntry* entry) {
  LineFields fields(line);
  entry->start = fields.number<uint64_t>(16);
  fields.expect('-');
  entry->end = fields.number<uint64_t>(16);
  fields.expect(' ');
  std::string_view permissions = fields.take(4);
  fields.expect(' ');
  entry->file_offset = fields.number<uint64_t>(16);
  fields.expect(' ');
  entry->major = fields.number<uint32_t>(16);
  fields.expect(':');
  entry->minor = fields.number<uint32_t>(16);
  fields.expect(' ');
  entry->inode = fields.number<uint64_t>(10);
  bool separated = fields.rest().empty() || fields.rest().starts_with(' ');
  if (!fields.ok() || !separated || entry->start >= entry->end) return false;
  entry->readable = permissions[0] == 'r';
  entry->writable = permissions[1] == 'w';
  entry->executable = permissions[2] == 'x';
  entry->shared = permissions[3] == 's';
  fields.skip_spaces();
  std::string_view path = fields.rest();
  entry->deleted = path.starts_with('/') && path.ends_with(kDeletedMark);
  if (entry->deleted) path.remove_suffix(kDeletedMark.size());
  assign_unescaped(path, &entry->path);
  return true;
}

}  // namespace

size_t parse_maps(std::string_view text, const std::function<void(const MapsEntry&)>& on_entry) {
  size_t malformed = 0;
  MapsEntry entry;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (parse_line(line, &entry))
      on_entry(entry);
    else
      ++malformed;
  }
  return malformed;
}

Result<std::vector<MapsEntry>> read_maps(int32_t pid) {
  std::string text = TRY(read_text_file(fmt::format("/proc/{}/maps", pid), kMaxMapsBytes));
  std::vector<MapsEntry> entries;
  parse_maps(text, [&](const MapsEntry& entry) { entries.push_back(entry); });
  return entries;
}

}  // namespace cprof::object
