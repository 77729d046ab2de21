#include "session/parts.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <fmt/format.h>

#include "base/file.h"

namespace cprof::session {
namespace {

constexpr size_t kMostErrorBytes = 4096;

// The longest extension of the format that the path ends with, else what follows the last dot of its name.
size_t extension_bytes(const Output& output) {
  size_t longest = 0;
  for (std::string_view extension : output.format->extensions)
    if (output.path.ends_with(extension)) longest = std::max(longest, extension.size());
  size_t dot = output.path.rfind('.'), slash = output.path.rfind('/');
  bool has_dot = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1) && dot != 0;
  return longest == 0 && has_dot ? output.path.size() - dot : longest;
}

// In the copy: signals to the recording are not its own, and it ends without undoing what the original still uses.
[[noreturn]] void write_and_exit(const std::function<Result<profile::Profile>()>& make, const std::vector<Output>& outputs,
                                 const format::WriteOptions& options, const LossListener& on_losses, int error_fd) {
  for (int number : {SIGINT, SIGTERM, SIGUSR2}) signal(number, SIG_IGN);
  Result<void> written;
  const auto note = [&](const std::string& path, const Diagnostics& losses) {
    if (on_losses) on_losses(path, losses);
  };
  if (auto profile = make()) written = write_outputs(*profile, outputs, options, note);
  else written = std::unexpected(profile.error());
  if (!written) (void)write_fully(error_fd, std::as_bytes(std::span(written.error().message)), "pipe");
  _exit(written ? 0 : 1);
}

}  // namespace

std::string part_path(const Output& output, size_t number) {
  size_t stem = output.path.size() - extension_bytes(output);
  return fmt::format("{}.{}{}", output.path.substr(0, stem), number, output.path.substr(stem));
}

PartWriter::~PartWriter() { (void)wait(); }

std::vector<Output> PartWriter::outputs_of(size_t number) const {
  std::vector<Output> outputs = outputs_;
  for (Output& output : outputs) output.path = part_path(output, number);
  return outputs;
}

Result<void> PartWriter::start(const std::function<Result<profile::Profile>()>& make) {
  TRY(wait());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd read_end(ends[0]), write_end(ends[1]);
  pid_t child = fork();
  if (child < 0) return fail_errno("fork, to write a part of the recording");
  if (child == 0) write_and_exit(make, outputs_of(next_), options_, on_losses_, write_end.get());
  child_ = child;
  error_ = std::move(read_end);
  return {};
}

Result<void> PartWriter::finish(bool wait) {
  if (!is_busy()) return {};
  int status = 0;
  pid_t ended = 0;
  do ended = waitpid(child_, &status, wait ? 0 : WNOHANG);
  while (ended < 0 && errno == EINTR);
  if (ended == 0) return {};
  child_ = -1;
  size_t number = next_++;
  if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    note_written(number);
    return {};
  }
  auto text = read_all(error_.get(), kMostErrorBytes, "part");
  if (text && !text->empty()) return fail(std::string(reinterpret_cast<const char*>(text->data()), text->size()));
  return fail(fmt::format("{}: the process that wrote this part of the recording died", part_path(outputs_.front(), number)));
}

void PartWriter::name_last(std::vector<Output>& outputs, std::vector<std::string>& outdated) const {
  outputs = outputs_of(next_);
  if (keep_ == 0 || next_ < keep_) return;
  for (const Output& output : outputs_of(next_ - keep_)) outdated.push_back(output.path);
}

void PartWriter::note_written(size_t number) {
  count_written_++;
  for (const Output& output : outputs_of(number)) written_.push_back(output.path);
  if (keep_ == 0 || number < keep_) return;
  for (const Output& output : outputs_of(number - keep_)) {
    unlink(output.path.c_str());
    std::erase(written_, output.path);
  }
}

}  // namespace cprof::session
