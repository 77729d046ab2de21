// The keys at the beginning of a JSON text that may be cut anywhere: what a format is recognised by. Used by the sniff
// functions of the JSON formats; pure.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace cprof::format {

class JsonHead {
 public:
  // Of bytes that are no JSON, nothing is found.
  explicit JsonHead(std::span<const std::byte> head);

  // By path: "meta", "meta.interval", "profiles.[].type", "[].ph"; down to three levels.
  bool has(std::string_view path) const { return keys_.contains(path); }
  // The text at a path; "" when there is none.
  std::string_view text(std::string_view path) const;
  bool is_array() const { return is_array_; }

 private:
  friend class JsonHeadHandler;
  std::set<std::string, std::less<>> keys_;
  std::map<std::string, std::string, std::less<>> texts_;
  bool is_array_ = false;
};

}  // namespace cprof::format
