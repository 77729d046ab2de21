// The text of source files that debug info names. Called by views that show code beside its weight; nobody else's file
// names come here. Regular files of bounded size only, each read once. Never writes; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cprof::source {

class SourceText {
 public:
  SourceText(std::string path, std::string text, int64_t changed_ns);

  const std::string& path() const { return path_; }
  int64_t changed_ns() const { return changed_ns_; }  // real time of its last change
  size_t size() const { return starts_.size(); }
  // From 1; "" beyond the end. Without the line break.
  std::string_view line(size_t number) const;

 private:
  std::string path_, text_;
  int64_t changed_ns_ = 0;
  std::vector<size_t> starts_;
};

class SourceFiles {
 public:
  // roots: folders under which a file is looked for by its whole path and by ever shorter ends of it, before the path that
  // debug info names.
  explicit SourceFiles(std::vector<std::string> roots) : roots_(std::move(roots)) {}

  // Not there, not readable or too large: an error that says so.
  Result<std::shared_ptr<const SourceText>> find(std::string_view name);

 private:
  Result<std::shared_ptr<const SourceText>> look_for(const std::string& name) const;

  std::vector<std::string> roots_;
  std::map<std::string, Result<std::shared_ptr<const SourceText>>, std::less<>> known_;
};

}  // namespace cprof::source
