#include "pipeline/perf_maps.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <string>
#include <utility>

#include "base/file.h"
#include "object/process_files.h"

namespace cprof::pipeline {
namespace {

constexpr size_t kMaxPerfMapBytes = 512u << 20;

// Inside first: a file of that name outside may be another process's.
Result<Fd> open_perf_map(int32_t pid) {
  int32_t pid_inside = pid;
  if (auto status = object::read_status(pid, pid); status && status->pid_in_namespace) pid_inside = status->pid_in_namespace;
  auto inside = object::open_in_root(pid, fmt::format("/tmp/perf-{}.map", pid_inside));
  if (inside) return inside;
  return object::open_in_directory_root("/", fmt::format("/tmp/perf-{}.map", pid));
}

}  // namespace

std::optional<symbolize::PerfMap::Entry> PerfMaps::find(int32_t pid, uint64_t address) {
  Known& known = maps_[pid];
  auto found = known.map ? known.map->find(address) : std::nullopt;
  if (found || std::exchange(known.round, round_) == round_) return found;
  auto fd = open_perf_map(pid);
  struct stat st{};
  if (!fd || fstat(fd->get(), &st) != 0) return std::nullopt;
  const auto bytes = static_cast<uint64_t>(st.st_size);
  if (known.map && bytes == known.bytes) return std::nullopt;
  known.bytes = bytes;
  auto text = read_all(fd->get(), kMaxPerfMapBytes, "perf map");
  if (!text) return std::nullopt;
  const std::string_view view(reinterpret_cast<const char*>(text->data()), text->size());
  known.map = std::make_unique<symbolize::PerfMap>(symbolize::PerfMap::parse(view));
  return known.map->find(address);
}

}  // namespace cprof::pipeline
