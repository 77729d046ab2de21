#include "uprobe/tracer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>

#include "collect/bpf/sampler_abi.h"
#include "collect/bpf/support.h"

namespace cprof::uprobe {
namespace {

using collect::ProbePlace;
using collect::UprobeLinks;

constexpr uint64_t kMostRowBytes = 64 << 20;  // sums and histograms of all functions
constexpr uint64_t kCallsBytes = 16 << 20;
constexpr uint32_t kStackRingBytes = 1 << 20;  // of each CPU

bool is_kernel_from(int wanted_major, int wanted_minor) {
  utsname names{};
  uname(&names);
  int major = 0, minor = 0;
  if (sscanf(names.release, "%d.%d", &major, &minor) != 2) return false;
  return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
}

uprobe_filter filter_of(const TraceTarget& target) {
  if (!target.cgroup.empty()) return UPROBE_CGROUP;
  if (!target.tids.empty()) return UPROBE_THREADS;
  if (target.pids.empty()) return UPROBE_ANY;
  return target.pids.size() == 1 && !target.children ? UPROBE_ONE_PROCESS : UPROBE_PROCESSES;
}

// As many rows a function as there are CPUs, while that is not too much memory.
uint32_t shards_for(size_t functions, bool has_latency) {
  const auto cpus = static_cast<uint64_t>(std::max(1l, sysconf(_SC_NPROCESSORS_CONF)));
  const uint64_t bytes = functions * (sizeof(uprobe_row) + (has_latency ? sizeof(uprobe_histogram) : 0));
  const uint64_t affordable = std::max<uint64_t>(1, kMostRowBytes / std::max<uint64_t>(1, bytes));
  return static_cast<uint32_t>(std::bit_floor(std::min(std::bit_ceil(cpus), affordable)));
}

uprobe_settings settings_of(const TraceOptions& options, size_t functions) {
  uprobe_settings settings{};
  settings.filter = filter_of(options.target);
  if (settings.filter == UPROBE_ONE_PROCESS) settings.process = static_cast<uint32_t>(options.target.pids.front());
  settings.inherit = options.target.children;
  settings.shards = shards_for(functions, options.has_latency);
  settings.has_latency = options.has_latency;
  settings.has_callers = options.has_callers;
  settings.has_calls = options.has_calls;
  settings.finds_mappings = is_kernel_from(5, 17);
  settings.rate_limit = options.rate_limit;
  settings.least_ns = options.least_ns;
  settings.calls_bytes = kCallsBytes;
  settings.has_stacks = options.has_stacks;
  settings.ring_bytes = kStackRingBytes;
  settings.user_stacks = SAMPLER_USER_TABLES;
  settings.max_depth = SAMPLER_MAX_DEPTH;
  return settings;
}

}  // namespace

Result<std::unique_ptr<Tracer>> Tracer::make(const TraceOptions& options, std::vector<ProbedFunction>& functions,
                                             const std::vector<TargetFile>& files) {
  if (auto obstacle = collect::find_bpf_obstacle(collect::read_bpf_machine())) return fail("bpf: " + obstacle->text(), ENOTSUP);
  if (!is_kernel_from(5, 15)) return fail("uprobe needs Linux 5.15 or later: before, a program is not told which probe it is run for", ENOTSUP);
  if (options.has_stacks && !is_kernel_from(5, 17))
    return fail("--stack needs Linux 5.17 or later: before, a program cannot walk as many frames as a stack may have", ENOTSUP);
  std::unique_ptr<Tracer> tracer(new Tracer(options, functions, files));
  TRY(tracer->load());
  return tracer;
}

Result<void> Tracer::load() {
  TRY(number_sites());
  uprobe_settings settings = settings_of(options_, functions_.size());
  calibration_ = TRY(calibrate(settings, options_.attach, options_.by_return_address));
  for (size_t i = 0; i < 2; i++) {
    settings.self_ns[i] = calibration_.self_ns[i];
    settings.pair_ns[i] = calibration_.pair_ns[i];
  }
  object_ = TRY(collect::UprobeObject::load(settings, {.sites = static_cast<uint32_t>(sites_.size()),
                                                       .functions = static_cast<uint32_t>(functions_.size()),
                                                       .is_multi = calibration_.is_multi}));
  std::ranges::copy(sites_, object_->sites().begin());
  TRY(name_targets());
  return object_->start();
}

Result<void> Tracer::name_targets() {
  const auto filter = filter_of(options_.target);
  if (filter == UPROBE_PROCESSES)
    for (int32_t pid : options_.target.pids) TRY(object_->add_target(static_cast<uint32_t>(pid)));
  for (int32_t tid : options_.target.tids) TRY(object_->add_target(static_cast<uint32_t>(tid)));
  if (filter != UPROBE_CGROUP) return {};
  const std::string path = options_.target.cgroup_path();
  cgroup_ = Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!cgroup_) return fail_errno("--cgroup " + path);
  return object_->set_cgroup(cgroup_.get());
}

Result<void> Tracer::add_place(const ProbedFunction& function, const uprobe_site& site, std::vector<ProbePlace>& to) {
  const object::ElfFile& elf = *files_[function.file].elf;
  const auto offset = elf.svma_to_file_offset(site.address);
  if (!offset) return fail(fmt::format("{}: {} lies outside of the file", elf.name(), function.name));
  to.push_back({*offset, static_cast<uint32_t>(sites_.size())});
  sites_.push_back(site);
  sites_.back().function = static_cast<uint32_t>(&function - functions_.data());
  sites_.back().is_untimed = !function.why_untimed.empty();
  return {};
}

Result<void> Tracer::number_sites() {
  plans_.resize(files_.size());
  for (const ProbedFunction& function : functions_) {
    Plan& plan = plans_[function.file];
    for (const uprobe_site& site : function.entries) TRY(add_place(function, site, plan.entries));
    if (!options_.by_return_address || !options_.has_latency) {
      // Counted only, it is enough to know of jumps to the entry: those are no calls.
      for (const uprobe_site& site : function.exits)
        if (options_.has_latency || site.kind == UPROBE_CONTINUE) TRY(add_place(function, site, plan.exits));
      continue;
    }
    for (uprobe_site site : function.entries) {
      site.kind = UPROBE_RETURNED;
      TRY(add_place(function, site, plan.returns));
    }
  }
  return {};
}

// Probes sit in the target's processes alone, where the kernel can be told of all their threads.
std::vector<int32_t> Tracer::pids_of(const TargetFile& file) const {
  const auto filter = filter_of(options_.target);
  const bool is_by_process = (filter == UPROBE_ONE_PROCESS || filter == UPROBE_PROCESSES) && !options_.target.children;
  if (!is_by_process || (calibration_.is_multi && !is_kernel_from(6, 11))) return {0};
  return file.pids.empty() ? options_.target.pids : file.pids;
}

// Exits first: a call is not begun before its end would be seen.
Result<void> Tracer::attach(const OnProgress& on_progress) {
  size_t all = 0;
  for (size_t i = 0; i < files_.size(); i++)
    all += pids_of(files_[i]).size() * (plans_[i].entries.size() + plans_[i].exits.size() + plans_[i].returns.size());
  auto progress = [&](size_t done) { on_progress(probes_ += done, all); };
  for (size_t i = 0; i < files_.size(); i++) {
    if (plans_[i].entries.empty()) continue;
    for (int32_t pid : pids_of(files_[i])) {
      const UprobeLinks::File file{files_[i].open_path(), pid};
      auto put = [&](UprobeLinks::At at, const std::vector<ProbePlace>& places) -> Result<void> {
        auto refused = object_->links().attach(file, at, places, progress);
        if (!refused) return std::unexpected(in_context(files_[i].path, refused.error()));
        note_refused(*refused);
        return {};
      };
      TRY(put(UprobeLinks::At::kExit, plans_[i].exits));
      TRY(put(UprobeLinks::At::kReturn, plans_[i].returns));
      TRY(put(UprobeLinks::At::kEntry, plans_[i].entries));
    }
  }
  return {};
}

void Tracer::note_refused(std::span<const uint32_t> sites) {
  for (uint32_t number : sites) {
    const uprobe_site& site = sites_[number];
    const std::string example = fmt::format("{} at {:#x}", functions_[site.function].name, site.address);
    if (site.kind == UPROBE_ENTRY)
      refused_.add("entries_refused", Severity::kDataLoss,
                   "functions that the kernel lets nobody probe: their calls are not counted", 1, example);
    else
      refused_.add("exits_refused", Severity::kDataLoss,
                   "exits that the kernel lets nobody probe: calls that end there count as unwound", 1, example);
  }
}

FunctionSums Tracer::sums(uint32_t function, bool with_histogram) const {
  FunctionSums sums = sums_of(object_->row(function));
  if (!options_.has_latency) sums.untimed = sums.calls;
  else if (with_histogram) object_->add_histogram(function, sums.histogram.buckets);
  return sums;
}

Diagnostics Tracer::diagnostics() const {
  Diagnostics losses = refused_;
  const auto counters = object_->counters();
  auto tell = [&](uint32_t which, const char* name, Severity severity, const char* words) {
    if (counters[which]) losses.add(name, severity, words, counters[which]);
  };
  tell(UPROBE_CALLS_LOST, "calls_lost", Severity::kDataLoss,
       "calls that are counted but are no slices, as they came faster than they could be read; take --min-duration or --rate-limit");
  tell(UPROBE_CALLS_LIMITED, "calls_limited", Severity::kNotice, "calls that are counted but are no slices, for --rate-limit");
  tell(UPROBE_NO_THREAD_ROOM, "calls_without_memory", Severity::kDataLoss, "calls without latency: the kernel had no memory for their thread");
  tell(UPROBE_TOO_DEEP, "calls_too_deep", Severity::kDataLoss, "calls without latency: more than 128 traced calls within each other");
  tell(UPROBE_UNMATCHED, "exits_unmatched", Severity::kInfo,
       "ends of calls that had begun before the probes were there, or beyond 128 within each other");
  tell(UPROBE_CALLERS_FULL, "callers_full", Severity::kDataLoss, "calls whose caller was not noted, as there were too many different ones");
  tell(UPROBE_STACKS_BUSY, "stacks_busy", Severity::kDataLoss, "told calls without a stack, as their CPU was walking as many stacks as it can at once");
  tell(UPROBE_TARGETS_FULL, "targets_full", Severity::kDataLoss, "processes not followed because there were too many");
  return losses;
}

}  // namespace cprof::uprobe
