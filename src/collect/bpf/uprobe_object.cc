#include "collect/bpf/uprobe_object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collect/bpf/bpf_messages.h"
#include "collect/bpf/built_in_object.h"
#include "collect/bpf/map_pairs.h"
#include "collect/bpf/object_bytes.h"

namespace cprof::collect {
namespace {

size_t page_rounded(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

Result<std::unique_ptr<UprobeObject>> UprobeObject::load(const uprobe_settings& settings, const Sizes& sizes) {
  std::unique_ptr<UprobeObject> object(new UprobeObject());
  TRY(object->open_and_load(settings, sizes));
  return object;
}

UprobeObject::~UprobeObject() {
  if (links_) links_->detach();
  for (bpf_link* link : others_) bpf_link__destroy(link);
  ring_.stop();
  walk_.reset();
  for (std::span<std::byte> area : mapped_) munmap(area.data(), area.size());
  bpf_object__close(object_);
}

Result<void> UprobeObject::open_and_load(const uprobe_settings& settings, const Sizes& sizes) {
  settings_ = settings;
  object_ = TRY(open_built_in(uprobe_object_bytes(settings.has_stacks != 0), "cprof_uprobe", std::as_bytes(std::span(&settings, 1))));
  auto resize = [&](const char* name, uint32_t entries) { bpf_map__set_max_entries(bpf_object__find_map_by_name(object_, name), entries); };
  const uint32_t rows = sizes.functions * settings.shards;
  resize("sites", std::max(1u, sizes.sites));
  resize("rows", rows);
  resize("histograms", settings.has_latency ? rows : 1);
  resize("calls", settings.has_calls ? static_cast<uint32_t>(settings.calls_bytes) : static_cast<uint32_t>(page_rounded(1)));
  if (settings.filter != UPROBE_PROCESSES && settings.filter != UPROBE_THREADS) resize("targets", 1);
  if (!settings.has_callers) resize("callers", 1);
  auto program = [&](const char* name) { return bpf_object__find_program_by_name(object_, name); };
  bpf_program__set_autoload(program("on_fork"), settings.inherit || settings.has_stacks);
  bpf_program__set_autoload(program("on_thread_end"), settings.has_calls != 0);
  bpf_program__set_autoload(program("on_task"), settings.has_calls != 0);
  if (sizes.is_multi)
    for (const char* name : {"on_entry", "on_exit"})
      bpf_program__set_expected_attach_type(program(name), static_cast<bpf_attach_type>(kUprobeMultiAttachType));
  if (settings.has_stacks) WalkMaps::fit(*object_);
  TRY(load_built_in(object_));
  if (settings.has_stacks) walk_ = TRY(WalkMaps::make(*object_, settings.ring_bytes));
  links_ = std::make_unique<UprobeLinks>(program("on_entry"), program("on_exit"), sizes.is_multi);
  return map_arrays(sizes);
}

Result<void> UprobeObject::map_arrays(const Sizes& sizes) {
  auto map = [&](const char* name, size_t bytes, int protection) -> Result<std::byte*> {
    void* area = mmap(nullptr, page_rounded(bytes), protection, MAP_SHARED, map_fd(name), 0);
    if (area == MAP_FAILED) return fail_errno(fmt::format("bpf: mapping {}", name));
    mapped_.emplace_back(static_cast<std::byte*>(area), page_rounded(bytes));
    return static_cast<std::byte*>(area);
  };
  const size_t sites = std::max(1u, sizes.sites), rows = size_t{sizes.functions} * settings_.shards;
  sites_ = {reinterpret_cast<uprobe_site*>(TRY(map("sites", sites * sizeof(uprobe_site), PROT_READ | PROT_WRITE))), sites};
  rows_ = {reinterpret_cast<const uprobe_row*>(TRY(map("rows", rows * sizeof(uprobe_row), PROT_READ))), rows};
  if (settings_.has_latency)
    histograms_ = {reinterpret_cast<const uprobe_histogram*>(TRY(map("histograms", rows * sizeof(uprobe_histogram), PROT_READ))), rows};
  return settings_.has_calls ? ring_.add(map_fd("calls")) : Result<void>();
}

int UprobeObject::map_fd(const char* name) const { return bpf_object__find_map_fd_by_name(object_, name); }

Result<void> UprobeObject::add_target(uint32_t id) {
  const uint32_t on = 1;
  if (bpf_map_update_elem(map_fd("targets"), &id, &on, BPF_ANY) == 0) return {};
  return bpf_failure("telling the program of a process", errno);
}

Result<void> UprobeObject::set_cgroup(int cgroup_fd) {
  const uint32_t key = 0, value = static_cast<uint32_t>(cgroup_fd);
  if (bpf_map_update_elem(map_fd("cgroup"), &key, &value, BPF_ANY) == 0) return {};
  return fail_errno("--cgroup: not a directory of the cgroup v2 hierarchy");
}

Result<void> UprobeObject::start() {
  if (settings_.inherit || settings_.has_stacks) others_.push_back(TRY(attach_built_in(object_, "on_fork")));
  if (settings_.has_stacks) others_.push_back(TRY(attach_built_in(object_, "on_exec")));
  if (settings_.has_calls) others_.push_back(TRY(attach_built_in(object_, "on_thread_end")));
  return {};
}

uprobe_row UprobeObject::row(uint32_t function) const {
  uprobe_row sum{};
  for (uint32_t shard = 0; shard < settings_.shards; shard++) {
    const uprobe_row& part = rows_[function * settings_.shards + shard];
    auto read = [](const uint64_t& value) { return __atomic_load_n(&value, __ATOMIC_RELAXED); };
    sum.finished += read(part.finished);  // before the calls: what ends meanwhile has begun
    sum.unwound += read(part.unwound);
    sum.untimed += read(part.untimed);
    sum.total_ns += read(part.total_ns);
    sum.raw_ns += read(part.raw_ns);
    sum.inverted_least_ns = std::max(sum.inverted_least_ns, read(part.inverted_least_ns));
    sum.most_ns = std::max(sum.most_ns, read(part.most_ns));
  }
  for (uint32_t shard = 0; shard < settings_.shards; shard++)
    sum.calls += __atomic_load_n(&rows_[function * settings_.shards + shard].calls, __ATOMIC_RELAXED);
  return sum;
}

void UprobeObject::add_histogram(uint32_t function, std::span<uint64_t, UPROBE_BUCKETS> into) const {
  if (histograms_.empty()) return;
  for (uint32_t shard = 0; shard < settings_.shards; shard++) {
    const uprobe_histogram& part = histograms_[function * settings_.shards + shard];
    for (size_t i = 0; i < UPROBE_BUCKETS; i++) into[i] += __atomic_load_n(&part.buckets[i], __ATOMIC_RELAXED);
  }
}

std::array<uint64_t, UPROBE_COUNTERS> UprobeObject::counters() const {
  std::array<uint64_t, UPROBE_COUNTERS> values{};
  for (uint32_t key = 0; key < UPROBE_COUNTERS; key++) (void)bpf_map_lookup_elem(map_fd("losses"), &key, &values[key]);
  return values;
}

Result<std::vector<std::pair<uprobe_caller_key, uprobe_caller>>> UprobeObject::callers() const {
  std::vector<uprobe_caller_key> keys;
  std::vector<uprobe_caller> values;
  TRY(read_pairs(map_fd("callers"), false, keys, values));
  std::vector<std::pair<uprobe_caller_key, uprobe_caller>> pairs;
  for (size_t i = 0; i < keys.size(); i++) pairs.emplace_back(keys[i], values[i]);
  return pairs;
}

void UprobeObject::read_calls(const std::function<void(const uprobe_call&)>& on_call) {
  ring_.read([&](std::span<const std::byte> record) {
    uprobe_call call{};
    memcpy(&call, record.data(), std::min(record.size(), sizeof(call)));
    on_call(call);
  });
}

Result<void> UprobeObject::tell_open_calls() {
  if (!settings_.has_calls) return {};
  return run_built_in_iterator(object_, "on_task", "listing the calls that go on");
}

}  // namespace cprof::collect
