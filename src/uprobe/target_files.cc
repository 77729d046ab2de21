#include "uprobe/target_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/file.h"

extern char** environ;

namespace cprof::uprobe {
namespace {

constexpr const char* kLibraryFolders[] = {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64",
                                           "/lib",                  "/usr/lib",                  "/usr/local/lib"};

bool is_file(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode);
}

// As execvp() looks.
Result<std::string> find_program(const std::string& name) {
  if (name.find('/') != name.npos) return is_file(name) ? Result<std::string>(name) : fail_errno(name, ENOENT);
  const char* path = getenv("PATH");
  std::string_view folders = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    const size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);
    const std::string candidate = folder.empty() ? name : fmt::format("{}/{}", folder, name);
    if (is_file(candidate) && access(candidate.c_str(), X_OK) == 0) return candidate;
    if (colon == folders.npos) return fail_errno(name, ENOENT);
    folders.remove_prefix(colon + 1);
  }
}

std::string absolute(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  std::string result = real ? real : path;
  free(real);
  return result;
}

// "#!/bin/sh -e": what runs the script.
std::string interpreter_of_script(const std::string& path) {
  auto file = open_read(path);
  char head[256] = {};
  if (!file || pread(file->get(), head, sizeof head - 1, 0) <= 2 || strncmp(head, "#!", 2) != 0) return "";
  std::string line(head + 2, strcspn(head + 2, "\n"));
  line.erase(0, line.find_first_not_of(" \t"));
  return line.substr(0, line.find_first_of(" \t"));
}

std::string loader_of(object::ElfFile& file) {
  auto name = file.section_data(".interp");
  if (!name) return "";
  const std::string_view text(reinterpret_cast<const char*>(name->data()), name->size());
  return std::string(text.substr(0, text.find('\0')));
}

Result<std::string> output_of(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
  Fd from(ends[0]), to(ends[1]);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail_errno(command[0], error);
  to.reset();
  auto bytes = read_all(from.get(), 1 << 20, command[0]);
  from.reset();
  int status = 0;
  waitpid(pid, &status, 0);
  if (!bytes) return std::unexpected(bytes.error());
  if (status != 0) return fail(fmt::format("{}: could not list what {} loads", command[0], command.back()));
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

}  // namespace

// "\tlibm.so.6 => /lib/libm.so.6 (0x7f...)", "\t/lib64/ld-linux-x86-64.so.2 (0x7f...)", and the vdso without a path.
Result<std::vector<std::string>> libraries_of(const std::string& program) {
  auto file = TRY(object::ElfFile::open(program));
  const std::string loader = loader_of(*file);
  std::vector<std::string> paths;
  if (loader.empty()) return paths;
  std::string text = TRY(output_of({loader, "--list", program}));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    const size_t slash = line.find('/'), bracket = line.rfind(" (");
    if (slash != line.npos && bracket != line.npos && bracket > slash) paths.emplace_back(line.substr(slash, bracket - slash));
  }
  return paths;
}

std::string TargetFile::open_path() const { return elf ? fmt::format("/proc/self/fd/{}", elf->fd()) : path; }

Result<void> TargetFiles::add_process(int32_t pid) {
  has_processes_ = true;
  bool is_first = true;
  for (const object::MapsEntry& entry : TRY(object::read_maps(pid))) {
    if (!entry.executable || entry.inode == 0 || !entry.path.starts_with('/')) continue;
    const auto known = std::ranges::find_if(files_, [&](const TargetFile& file) {
      return file.identity.inode == entry.inode && file.identity.major == entry.major && file.identity.minor == entry.minor;
    });
    if (known != files_.end()) {
      if (known->pids.back() != pid) known->pids.push_back(pid);
    } else {
      files_.push_back({.path = entry.path, .is_program = is_first, .pids = {pid}, .start = entry.start, .end = entry.end});
      files_.back().identity = {.major = entry.major, .minor = entry.minor, .inode = entry.inode, .build_id = {}};
    }
    is_first = false;
  }
  return is_first ? fail(fmt::format("process {} has no program: it is a thread of the kernel, or has ended", pid)) : Result<void>();
}

Result<void> TargetFiles::add_path(const std::string& path, bool is_program) {
  const std::string real = absolute(path);
  if (std::ranges::any_of(files_, [&](const TargetFile& file) { return file.path == real; })) return {};
  struct stat st;
  if (stat(real.c_str(), &st) != 0) return fail_errno(path);
  files_.push_back({.path = real, .is_program = is_program});
  files_.back().identity = {.major = major(st.st_dev), .minor = minor(st.st_dev), .inode = st.st_ino, .build_id = {}};
  return {};
}

Result<void> TargetFiles::add_command(const std::vector<std::string>& argv) {
  std::string program = TRY(find_program(argv.front()));
  if (const std::string interpreter = interpreter_of_script(program); !interpreter.empty()) program = interpreter;
  command_program_ = absolute(program);
  return add_path(program, true);
}

Result<void> TargetFiles::add_libraries() {
  if (command_program_.empty()) return {};
  const std::string program = std::exchange(command_program_, "");
  auto paths = libraries_of(program);
  if (!paths) {
    diagnostics_.add("libraries_unknown", Severity::kNotice, "programs whose libraries the loader does not tell; name a library by its path", 1,
                     paths.error().message);
    return {};
  }
  for (const std::string& path : *paths) TRY(add_path(path, false));
  return {};
}

// What no target has mapped: a path, a program, a library of this machine.
Result<void> TargetFiles::find_elsewhere(const FunctionPattern& pattern) {
  const std::string& name = pattern.file;
  if (name.find_first_of("*?") != name.npos) return {};
  if (name.find('/') != name.npos) return is_file(name) ? add_path(name, false) : fail_errno(name, ENOENT);
  if (has_processes_) return {};
  if (auto program = find_program(name)) return add_path(*program, true);
  for (const char* folder : kLibraryFolders)
    if (const std::string path = fmt::format("{}/{}", folder, name); is_file(path)) return add_path(path, false);
  return {};
}

std::vector<uint32_t> TargetFiles::matching(const FunctionPattern& pattern, bool with_libraries) const {
  std::vector<uint32_t> numbers;
  const std::string real = pattern.file.find('/') == pattern.file.npos ? "" : absolute(pattern.file);
  for (uint32_t i = 0; i < files_.size(); i++) {
    const TargetFile& file = files_[i];
    const bool is_meant = pattern.file.empty() ? with_libraries || file.is_program : pattern.names_file(file.path) || file.path == real;
    if (is_meant) numbers.push_back(i);
  }
  return numbers;
}

Result<std::vector<uint32_t>> TargetFiles::named_by(const FunctionPattern& pattern, bool with_libraries) {
  if (with_libraries || (!pattern.file.empty() && pattern.file.find('/') == pattern.file.npos)) TRY(add_libraries());
  std::vector<uint32_t> numbers = matching(pattern, with_libraries);
  if (numbers.empty() && !pattern.file.empty()) {
    TRY(find_elsewhere(pattern));
    numbers = matching(pattern, with_libraries);
  }
  if (numbers.empty() && !pattern.file.empty())
    return fail(fmt::format("'{}': no such file in the target; give its path: PATH:{}", pattern.text, pattern.name));
  for (uint32_t number : numbers) TRY(open(number));
  return numbers;
}

Result<void> TargetFiles::open(uint32_t number) {
  TargetFile& file = files_[number];
  if (file.elf) return {};
  const std::optional<int32_t> pid = file.pids.empty() ? std::nullopt : std::optional(file.pids.front());
  Fd fd = pid ? TRY(object::open_mapped_file(*pid, file.start, file.end, file.path, file.identity)) : TRY(open_read(file.path));
  file.elf = TRY(object::ElfFile::open(std::move(fd), file.path));
  file.debug = finder_.find(*file.elf, file.path, pid, diagnostics_);
  return {};
}

}  // namespace cprof::uprobe
