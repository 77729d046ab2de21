// A directory that a test fills and that goes away with it. Tests only.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "base/file.h"

namespace cprof::object {

class TemporaryTree {
 public:
  TemporaryTree() {
    std::string name = (std::filesystem::temp_directory_path() / "cprof-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryTree() { std::filesystem::remove_all(path_); }
  TemporaryTree(const TemporaryTree&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  std::string write(const std::string& name, std::span<const std::byte> content) const {
    std::string path = *this / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    auto file = OutputFile::create(path);
    CPROF_CHECK(file && file->write(content) && file->commit());
    return path;
  }
  std::string write(const std::string& name, std::string_view text) const {
    return write(name, std::as_bytes(std::span(text)));
  }
  std::string directory(const std::string& name) const {
    std::filesystem::create_directories(*this / name);
    return *this / name;
  }
  void link(const std::string& name, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(*this / name).parent_path());
    std::filesystem::create_symlink(target, *this / name);
  }
  void fifo(const std::string& name) const { CPROF_CHECK(mkfifo((*this / name).c_str(), 0600) == 0); }

 private:
  std::string path_;
};

}  // namespace cprof::object
