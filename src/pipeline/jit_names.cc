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

int64_t written_ns_of(const struct stat& st) {
  return int64_t{st.st_mtim.tv_sec} * static_cast<int64_t>(kSecondNs) + st.st_mtim.tv_nsec;
}

// Nobody removes such files: one that was last written before the process began is that of another, which had its number.
bool is_older_than(const Fd& file, const object::ProcessStatus& process) {
  constexpr int64_t kToleranceNs = 1'000'000'000;  // of clock ticks, and of clocks that are set
  struct stat st{};
  if (fstat(file.get(), &st) != 0) return true;
  const auto boot_ns = static_cast<int64_t>(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME));
  return written_ns_of(st) + kToleranceNs < boot_ns + static_cast<int64_t>(process.start_time_ns);
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

Result<std::string> read_from_start(const Fd& file, uint64_t size, int32_t pid) {
  const std::string name = fmt::format("perf-{}.map", pid);
  if (size > kMaxPerfMapBytes)
    return fail(fmt::format("{}: {} bytes are over the limit of {}", name, size, kMaxPerfMapBytes));
  std::string text(size, '\0');
  TRY(read_exactly_at(file.get(), 0, std::as_writable_bytes(std::span(text)), name));
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

JitNames::FileState JitNames::state_of(const Fd& file) {
  struct stat st{};
  if (!file || fstat(file.get(), &st) != 0 || st.st_size <= 0) return {};
  return {st.st_dev, st.st_ino, static_cast<uint64_t>(st.st_size), written_ns_of(st)};
}

// Cheap: what was read before is not read again.
void JitNames::read_grown_dump(Known& known) {
  if (std::exchange(known.dump_round, round_) == round_ || !known.dump || !known.dump_error.empty()) return;
  if (auto done = known.dump->read_until(state_of(known.dump_file).bytes); !done)
    known.dump_error = done.error().message;
}

// Agents write the whole file anew, some under another name first: what lies at the path now is the newest.
void JitNames::read_grown_map(int32_t pid, Known& known) {
  Fd opened_now = open_perf_map(pid);
  if (opened_now && known.map_file) known.map_file = std::move(opened_now);
  const Fd& file = known.map_file ? known.map_file : opened_now;
  const FileState state = state_of(file);
  if (state.bytes == 0 || state == known.map_state) return;
  const auto text = read_from_start(file, state.bytes, pid);
  known.map_state = state;
  known.map_error = text ? std::string() : text.error().message;
  if (text) known.map = std::make_unique<symbolize::PerfMap>(symbolize::PerfMap::parse(*text));
}

void JitNames::report(Diagnostics& diagnostics) const {
  for (const auto& [pid, known] : processes_) {
    for (const std::string* error : {&known.dump_error, &known.map_error})
      if (!error->empty())
        diagnostics.add(
            "jit_files_broken", Severity::kNotice,
            "perf maps and jitdumps that could not be read to their end: code that they tell of may have no name", 1,
            fmt::format("process {}: {}", pid, *error));
  }
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
