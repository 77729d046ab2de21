#include "pipeline/jit_names.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "object/process_files.h"

namespace cprof::pipeline {
namespace {

constexpr size_t kMaxPerfMapBytes = 512u << 20;
constexpr size_t kMostOpenFiles = 256;  // the others are opened when they are read

// Nobody removes such files: one that was last written before the process began is that of another, which had its number.
bool is_older_than(const Fd& file, const object::ProcessStatus& process) {
  constexpr int64_t kToleranceNs = 1'000'000'000;  // of clock ticks, and of clocks that are set
  struct stat st{};
  if (fstat(file.get(), &st) != 0) return true;
  const auto boot_ns = static_cast<int64_t>(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME));
  const int64_t written_ns = int64_t{st.st_mtim.tv_sec} * static_cast<int64_t>(kSecondNs) + st.st_mtim.tv_nsec;
  return written_ns + kToleranceNs < boot_ns + static_cast<int64_t>(process.start_time_ns);
}

// Inside first: a file of that name outside may be another process's.
Fd open_perf_map(int32_t pid) {
  const auto status = object::read_status(pid, pid);
  auto usable = [&](Result<Fd> file) { return file && !(status && is_older_than(*file, *status)) ? std::move(*file) : Fd(); };
  const int32_t pid_inside = status && status->pid_in_namespace ? status->pid_in_namespace : pid;
  if (Fd inside = usable(object::open_in_root(pid, fmt::format("/tmp/perf-{}.map", pid_inside)))) return inside;
  return usable(object::open_in_directory_root("/", fmt::format("/tmp/perf-{}.map", pid)));
}

// The file that the process maps and no other.
Fd open_dump(int32_t pid, const JitNames::Dump& dump) {
  const object::FileIdentity identity{dump.file.major, dump.file.minor, dump.file.inode, {}};
  auto mapped = object::open_mapped_file(pid, dump.start, dump.end, dump.path, identity);
  return mapped ? std::move(*mapped) : Fd();
}

uint64_t size_of(const Fd& file) {
  struct stat st{};
  return file && fstat(file.get(), &st) == 0 && st.st_size > 0 ? static_cast<uint64_t>(st.st_size) : 0;
}

std::optional<std::string> read_from_start(const Fd& file, uint64_t size) {
  if (size > kMaxPerfMapBytes) return std::nullopt;
  std::string text(size, '\0');
  if (!read_exactly_at(file.get(), 0, std::as_writable_bytes(std::span(text)), "perf map")) return std::nullopt;
  return text;
}

size_t read_some(int fd, uint64_t offset, std::span<std::byte> into) {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t count = pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

}  // namespace

// A compiler makes its file when it has something to say: tried at the 1st, 2nd, 4th, 8th, ... piece of code.
bool JitNames::note_code(int32_t pid) {
  Known& known = processes_[pid];
  if (!std::has_single_bit(++known.codes) || open_files_ >= kMostOpenFiles) return false;
  if (known.map_file) return true;
  known.map_file = open_perf_map(pid);
  open_files_ += static_cast<bool>(known.map_file);
  return true;
}

void JitNames::note_dump(int32_t pid, const Dump& dump) {
  Known& known = processes_[pid];
  if (known.dump_file || open_files_ >= kMostOpenFiles) return;
  known.dump_file = open_dump(pid, dump);
  if (!known.dump_file) return;
  open_files_++;
  const int fd = known.dump_file.get();
  known.dump = std::make_unique<symbolize::JitDump>([fd](uint64_t offset, std::span<std::byte> into) { return read_some(fd, offset, into); });
}

// Cheap: what was read before is not read again.
void JitNames::read_grown_dump(Known& known) {
  if (std::exchange(known.dump_round, round_) == round_ || !known.dump || known.is_dump_broken) return;
  known.is_dump_broken = !known.dump->read_until(size_of(known.dump_file));
}

void JitNames::read_grown_map(int32_t pid, Known& known) {
  Fd opened_now;
  if (!known.map_file) opened_now = open_perf_map(pid);
  const Fd& file = known.map_file ? known.map_file : opened_now;
  const uint64_t bytes = size_of(file);
  if (bytes == 0 || (known.map && bytes == known.map_bytes)) return;
  const auto text = read_from_start(file, bytes);
  if (!text) return;
  known.map_bytes = bytes;
  known.map = std::make_unique<symbolize::PerfMap>(symbolize::PerfMap::parse(*text));
}

// The dump knows more: lines, and code that was moved.
std::optional<JitNames::Name> JitNames::find_in(Known& known, uint64_t address, uint64_t time_ns) {
  if (known.dump)
    if (const auto entry = known.dump->find(address, time_ns))
      return Name{entry->name, entry->file, entry->line, entry->start, true, entry->code};
  if (!known.map) return std::nullopt;
  const auto entry = known.map->find(address);
  return entry ? std::optional(Name{entry->name, {}, 0, entry->start, false}) : std::nullopt;
}

std::optional<JitNames::Name> JitNames::find(int32_t pid, uint64_t address, uint64_t time_ns) {
  Known& known = processes_[pid];
  read_grown_dump(known);
  const auto found = find_in(known, address, time_ns);
  if (found || std::exchange(known.map_round, round_) == round_) return found;
  read_grown_map(pid, known);
  return find_in(known, address, time_ns);
}

bool JitNames::changes(int32_t pid, uint64_t address) {
  Known& known = processes_[pid];
  read_grown_dump(known);
  return known.dump && known.dump->changes(address);
}

}  // namespace cprof::pipeline
