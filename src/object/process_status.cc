#include <dirent.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/file.h"
#include "object/process_files.h"
#include "object/process_stat.h"

namespace cprof::object {
namespace {

constexpr size_t kMaxStatusBytes = 1 << 20;
constexpr uint64_t kMaxVdsoBytes = 1 << 20;
constexpr uint64_t kPage = 4096;
constexpr size_t kPagesAtOnce = 64;

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

Result<std::vector<int32_t>> list_numbers(const std::string& directory) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(directory.c_str()), closedir);
  if (!dir) return fail_errno(directory);
  std::vector<int32_t> numbers;
  errno = 0;
  while (dirent* entry = readdir(dir.get())) {
    std::string_view name = entry->d_name;
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    if (auto number = parse_number<int32_t>(name)) numbers.push_back(*number);
  }
  if (errno != 0) return fail_errno(directory);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

std::optional<StatLine> parse_stat(std::string_view text) {
  size_t open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) return std::nullopt;
  StatLine line;
  line.comm = text.substr(open + 1, close - open - 1);
  text.remove_prefix(close + 1);
  // Field 3 is the state, 4 the parent, 22 the start time.
  for (int field = 3; field <= 22; ++field) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    if (field != 4 && field != 22) continue;
    auto number = parse_number<uint64_t>(word);
    if (!number) return std::nullopt;
    if (field == 4)
      line.parent_pid = static_cast<int32_t>(*number);
    else
      line.start_ticks = *number;
  }
  return line;
}

std::optional<int32_t> parse_innermost_pid(std::string_view status) {
  constexpr std::string_view kField = "\nNSpid:";
  size_t at = status.find(kField);
  if (at == status.npos) return std::nullopt;
  status.remove_prefix(at + kField.size());
  status = status.substr(0, status.find('\n'));
  return parse_number<int32_t>(status.substr(status.find_last_of(" \t") + 1));
}

Result<ProcessStatus> read_status(int32_t pid, int32_t tid) {
  std::string path = fmt::format("/proc/{}/task/{}/stat", pid, tid);
  auto line = parse_stat(TRY(read_text_file(path, kMaxStatusBytes)));
  if (!line) return fail(path + ": not in the form that proc(5) gives");
  auto status_text = TRY(read_text_file(fmt::format("/proc/{}/status", pid), kMaxStatusBytes));
  ProcessStatus status;
  status.pid = pid;
  status.parent_pid = line->parent_pid;
  // Kernels without pid namespaces have no such line.
  status.pid_in_namespace = parse_innermost_pid(status_text).value_or(pid);
  status.start_time_ns = line->start_ticks * (1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
  status.comm = std::move(line->comm);
  return status;
}

Result<std::vector<int32_t>> list_processes() { return list_numbers("/proc"); }

Result<std::vector<int32_t>> list_threads(int32_t pid) { return list_numbers(fmt::format("/proc/{}/task", pid)); }

Result<std::vector<std::byte>> read_own_vdso() {
  uint64_t address = getauxval(AT_SYSINFO_EHDR);
  if (address == 0) return fail("this kernel gives no vdso", ENOENT);
  for (const MapsEntry& entry : TRY(read_maps(getpid()))) {
    if (address < entry.start || address >= entry.end) continue;
    uint64_t size = entry.end - address;
    if (!entry.readable || size > kMaxVdsoBytes) break;
    const auto* start = reinterpret_cast<const std::byte*>(address);
    return std::vector<std::byte>(start, start + size);
  }
  return fail(fmt::format("the vdso at {:#x} is not in our own maps", address), ENOENT);
}

// One remote piece a page: the kernel copies whole pieces, so the count is exact to where the memory ends.
Result<size_t> read_process_memory(int32_t pid, uint64_t address, std::span<std::byte> into) {
  size_t done = 0;
  while (done < into.size()) {
    iovec pieces[kPagesAtOnce];
    size_t count = 0, wanted = 0;
    while (count < kPagesAtOnce && done + wanted < into.size()) {
      uint64_t at = address + done + wanted;
      size_t length = std::min<uint64_t>(into.size() - done - wanted, kPage - at % kPage);
      pieces[count++] = {reinterpret_cast<void*>(at), length};
      wanted += length;
    }
    iovec local = {into.data() + done, wanted};
    ssize_t copied = process_vm_readv(pid, &local, 1, pieces, count, 0);
    if (copied < 0 && done == 0) return fail_errno(fmt::format("memory of process {} at {:#x}", pid, address));
    if (copied <= 0) break;
    done += static_cast<size_t>(copied);
    if (static_cast<size_t>(copied) < wanted) break;
  }
  return done;
}

}  // namespace cprof::object
