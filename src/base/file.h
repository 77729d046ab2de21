// Whole-file reads and safe output files. Reads use pread, never mmap: a file that shrinks is an error, not a SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace cprof {

Result<Fd> open_read(const std::string& path);

// Reads until end of file, at most max_bytes (more is an error that names the limit). Works on /proc and pipes.
Result<std::vector<std::byte>> read_all(int fd, size_t max_bytes, const std::string& name_for_errors);
Result<std::string> read_text_file(const std::string& path, size_t max_bytes);

// Exactly size bytes at offset, or an error.
Result<void> read_exactly_at(int fd, uint64_t offset, std::span<std::byte> into, const std::string& name_for_errors);

Result<void> write_fully(int fd, std::span<const std::byte> bytes, const std::string& name_for_errors);

std::string temporary_folder();  // TMPDIR or /tmp

// An unnamed file there: for what must be read or written in any order on its way to or from a pipe.
Result<Fd> open_temporary();

// A file there with a name, for what opens files by their path; gone with this object.
class TemporaryFile {
 public:
  static Result<TemporaryFile> create();
  TemporaryFile(TemporaryFile&&) noexcept = default;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  Fd without_name() &&;  // the file lives as long as that

 private:
  TemporaryFile(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Fd fd_;  // none: nothing to remove
  std::string path_;
};

// Where an output goes. A regular file is written to "NAME.tmp.PID" beside it and renamed by commit(); pipes, devices
// and "-" (stdout) are written directly. Destroyed without commit(), the temporary file is removed.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path);
  // An open descriptor, written directly; it stays open.
  static Result<OutputFile> onto(int fd, std::string name);
  // Whether create() would find a folder to write to; nothing is made.
  static Result<void> check(const std::string& path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();

  Result<void> write(std::span<const std::byte> bytes);  // buffered, 256 KiB
  Result<void> write(std::string_view text);
  Result<void> flush();
  Result<void> commit();
  // For formats that write in any order: the temporary file itself, to be used instead of write(). -1: written directly.
  int regular_fd() const { return temporary_.empty() ? -1 : fd_.get(); }

  const std::string& path() const { return path_; }
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  OutputFile() = default;

  Fd fd_;
  std::string path_;
  std::string temporary_;  // empty when written directly
  std::vector<std::byte> buffer_;
  uint64_t bytes_written_ = 0;
};

}  // namespace cprof
