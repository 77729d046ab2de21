#include "pipeline/unfinished.h"

#include <time.h>

#include <algorithm>
#include <map>

#include "object/process_files.h"
#include "pipeline/modules.h"
#include "pipeline/namer.h"
#include "pipeline/stack_interner.h"
#include "pipeline/surroundings.h"
#include "pipeline/wait_classifier.h"
#include "space/tracker.h"

namespace cprof::pipeline {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

uint64_t clock_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * kSecondNs + static_cast<uint64_t>(t.tv_nsec);
}

// Both clocks began at the same distance. A machine that slept meanwhile is taken for another one.
bool is_this_boot(const profile::RunInfo& run) {
  event::SessionInfo info;
  info.hostname = run.hostname;
  info.kernel_release = run.kernel_release;
  if (!surroundings_of(info).same_machine || run.start_realtime_ns == 0) return false;
  const auto then = static_cast<int64_t>(run.start_realtime_ns - run.start_ns);
  const auto now = static_cast<int64_t>(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
  return std::abs(now - then) < int64_t{5 * kSecondNs};
}

Result<std::shared_ptr<object::ElfFile>> open_elf(const std::string& path) {
  if (path == "[vdso]") return object::ElfFile::from_memory(TRY(object::read_own_vdso()), path);
  Fd fd = TRY(object::open_in_directory_root("/", path));
  return object::ElfFile::open(std::move(fd), path);
}

class LateNamer {
 public:
  LateNamer(profile::ProfileBuilder& builder, const Options& options)
      : builder_(builder), options_(options), modules_(diagnostics()),
        interner_(builder, modules_, options, tracker_.kernel(), diagnostics()),
        namer_(options, builder, modules_, interner_, diagnostics()) {}

  void run() {
    std::map<profile::MappingId, std::vector<profile::LocationId>> by_mapping;
    std::vector<profile::LocationId> in_kernel;
    const profile::Profile& profile = builder_.profile();
    for (size_t i = 0; i < profile.locations.size(); ++i) {
      const profile::Location& location = profile.locations[i];
      if (location.line_count > 0) continue;
      if (location.kind == profile::FrameKind::kKernel) in_kernel.emplace_back(i);
      else if (location.mapping.valid()) by_mapping[location.mapping].emplace_back(i);
    }
    for (auto& [mapping, locations] : by_mapping) name_mapping(mapping, locations);
    name_kernel(in_kernel);
  }

 private:
  Diagnostics& diagnostics() { return builder_.profile().diagnostics; }

  void name_mapping(profile::MappingId id, std::vector<profile::LocationId>& locations) {
    const profile::Profile& profile = builder_.profile();
    const profile::Mapping& mapping = profile.mappings[id.index()];
    ModuleFile file;
    file.path = profile.text(mapping.path);
    file.build_id = profile.text(mapping.build_id);
    if (!file.build_id.empty()) {
      auto elf = open_elf(file.path);
      if (elf && object::to_hex((*elf)->build_id()) == file.build_id) file.elf = std::move(*elf);
    }
    if (file.elf) file.debug = finder_.find(*file.elf, file.path, std::nullopt, diagnostics());
    file.debug_searched = true;
    std::ranges::sort(locations, {}, [&](auto location) { return profile.locations[location.index()].file_address; });
    namer_.name_file(file, locations);
  }

  void name_kernel(const std::vector<profile::LocationId>& locations) {
    if (locations.empty() && builder_.profile().off_cpu.empty()) return;
    auto symbols = kernel_symbols();
    if (!symbols) {
      diagnostics().add("kernel_symbols_unreadable", Severity::kNotice, "kernel frames have no names: " + symbols.error().message);
      return classify_waits(builder_.profile(), nullptr);
    }
    for (profile::LocationId id : locations) namer_.name_kernel(id, *symbols);
    classify_waits(builder_.profile(), &*symbols);
  }

  Result<object::KernelSymbols> kernel_symbols() {
    if (!options_.kallsyms_given && !is_this_boot(builder_.profile().run))
      return fail("the recording is from another kernel or boot; --kallsyms FILE names a copy of its /proc/kallsyms");
    return object::KernelSymbols::load(options_.kallsyms_path);
  }

  profile::ProfileBuilder& builder_;
  const Options& options_;
  Modules modules_;
  space::Tracker tracker_;
  StackInterner interner_;
  Namer namer_;
  object::DebugFileFinder finder_;
};

}  // namespace

void name_unfinished(profile::Profile& profile, const Options& options) {
  profile.diagnostics.add("recording_cut_off", Severity::kDataLoss,
                          "the recording was cut off: it holds what had come some seconds before its end");
  profile.run.is_unfinished = false;
  if (!options.symbolize) return;
  profile::ProfileBuilder builder;
  builder.profile() = std::move(profile);
  LateNamer(builder, options).run();
  profile = builder.take();
}

}  // namespace cprof::pipeline
