#include "format/json/json_head.h"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <vector>

namespace cprof::format {
namespace {

constexpr size_t kMaxLevels = 3;
constexpr size_t kMaxKeys = 1000;
constexpr size_t kMaxBytes = 64 * 1024;
constexpr size_t kMaxDepth = 1024;

}  // namespace

// Keeps the path to where it is: the key of each open object, "[]" of each open array.
class JsonHeadHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, JsonHeadHandler> {
 public:
  explicit JsonHeadHandler(JsonHead& head) : head_(head) {}

  bool Default() { return true; }
  bool StartObject() { return open(""); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool EndArray(rapidjson::SizeType) { return close(); }
  bool StartArray() {
    head_.is_array_ |= path_.empty();
    return open("[]");
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    if (path_.size() > kMaxLevels) return true;
    path_.back().assign(text, size);
    head_.keys_.insert(path());
    return head_.keys_.size() < kMaxKeys;
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    if (!path_.empty() && path_.size() <= kMaxLevels) head_.texts_.try_emplace(path(), text, size);
    return true;
  }

 private:
  bool open(const char* name) {
    path_.emplace_back(name);
    return path_.size() < kMaxDepth;
  }
  bool close() {
    path_.pop_back();
    return true;
  }
  std::string path() const {
    std::string text = path_[0];
    for (size_t i = 1; i < path_.size(); ++i) text += "." + path_[i];
    return text;
  }

  JsonHead& head_;
  std::vector<std::string> path_;
};

JsonHead::JsonHead(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), std::min(head.size(), kMaxBytes));
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || (text[first] != '{' && text[first] != '[')) return;
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  JsonHeadHandler handler(*this);
  reader.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag>(stream, handler);
}

std::string_view JsonHead::text(std::string_view path) const {
  auto found = texts_.find(path);
  return found == texts_.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace cprof::format
