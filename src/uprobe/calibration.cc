#include "uprobe/calibration.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "collect/bpf/uprobe_object.h"
#include "object/process_files.h"

// One begins with an instruction that the kernel emulates, the other with one that it steps through.
asm(".pushsection .text\n"
    ".p2align 4\n"
    ".globl cprof_uprobe_emulated, cprof_uprobe_emulated_exit, cprof_uprobe_stepped, cprof_uprobe_stepped_exit\n"
    ".type cprof_uprobe_emulated, @function\n"
    "cprof_uprobe_emulated:\n"
    "  push %rbx\n"
    "  pop %rbx\n"
    "cprof_uprobe_emulated_exit:\n"
    "  ret\n"
    ".p2align 4\n"
    ".type cprof_uprobe_stepped, @function\n"
    "cprof_uprobe_stepped:\n"
    "  mov %edi, %eax\n"
    "cprof_uprobe_stepped_exit:\n"
    "  ret\n"
    ".popsection\n");

extern "C" void cprof_uprobe_emulated();
extern "C" void cprof_uprobe_emulated_exit();
extern "C" void cprof_uprobe_stepped();
extern "C" void cprof_uprobe_stepped_exit();

namespace cprof::uprobe {
namespace {

using collect::ProbePlace;
using collect::UprobeLinks;
using collect::UprobeObject;
using Function = void (*)();

constexpr Function kFunctions[] = {cprof_uprobe_emulated, cprof_uprobe_stepped};
constexpr Function kExits[] = {cprof_uprobe_emulated_exit, cprof_uprobe_stepped_exit};
constexpr size_t kBatches = 240, kCallsPerBatch = 10;

Result<uint64_t> file_offset_of(Function function) {
  const auto address = reinterpret_cast<uint64_t>(function);
  for (const object::MapsEntry& entry : TRY(object::read_maps(getpid())))
    if (address >= entry.start && address < entry.end) return address - entry.start + entry.file_offset;
  return fail("this program's own code is not mapped");
}

uprobe_site site_of(uint32_t function, uint8_t kind) {
  uprobe_site site{};
  site.function = function;
  site.kind = kind;
  site.condition = UPROBE_ALWAYS;
  site.base = site.index = UPROBE_NO_REGISTER;
  site.is_stepped = static_cast<uint8_t>(function);
  return site;
}

// On a busy machine many batches are interrupted: the lower quartile is what it costs when none is.
uint64_t undisturbed(std::vector<uint64_t>& values) {
  const auto quarter = values.begin() + static_cast<ptrdiff_t>(values.size() / 4);
  std::ranges::nth_element(values, quarter);
  return *quarter;
}

class Trial {
 public:
  explicit Trial(std::unique_ptr<UprobeObject> object) : object_(std::move(object)) {}

  Result<void> attach(bool has_latency, bool by_return_address) {
    const UprobeLinks::File file{"/proc/self/exe", getpid()};
    std::vector<ProbePlace> entries, exits;
    for (uint32_t i = 0; i < 2; i++) {
      object_->sites()[i] = site_of(i, UPROBE_ENTRY);
      object_->sites()[2 + i] = site_of(i, by_return_address ? UPROBE_RETURNED : UPROBE_EXIT);
      entries.push_back({TRY(file_offset_of(kFunctions[i])), i});
      exits.push_back({TRY(file_offset_of(by_return_address ? kFunctions[i] : kExits[i])), 2 + i});
    }
    auto put = [&](UprobeLinks::At at, const std::vector<ProbePlace>& places) -> Result<void> {
      const auto refused = TRY(object_->links().attach(file, at, places, [](size_t) {}));
      return refused.empty() ? Result<void>() : fail("the kernel refuses probes in this program");
    };
    if (has_latency) TRY(put(by_return_address ? UprobeLinks::At::kReturn : UprobeLinks::At::kExit, exits));
    return put(UprobeLinks::At::kEntry, entries);
  }

  // Batches, as one that is interrupted must not count.
  Result<void> measure(Calibration& into) const {
    for (uint32_t which = 0; which < 2; which++) {
      std::vector<uint64_t> self, pair;
      for (size_t batch = 0; batch < kBatches; batch++) {
        const uprobe_row before = object_->row(which);
        const uint64_t start_ns = monotonic_ns();
        for (size_t i = 0; i < kCallsPerBatch; i++) kFunctions[which]();
        pair.push_back((monotonic_ns() - start_ns) / kCallsPerBatch);
        const uprobe_row after = object_->row(which);
        if (after.finished - before.finished != kCallsPerBatch) return fail("probes in this program do not see its calls");
        self.push_back((after.raw_ns - before.raw_ns) / kCallsPerBatch);
      }
      into.self_ns[which] = undisturbed(self);
      into.pair_ns[which] = undisturbed(pair);
    }
    return {};
  }

 private:
  std::unique_ptr<UprobeObject> object_;
};

Result<Calibration> try_out(const uprobe_settings& settings, bool is_multi, bool by_return_address) {
  Calibration found{.is_multi = is_multi};
  Trial trial(TRY(UprobeObject::load(settings, {.sites = 4, .functions = 2, .is_multi = is_multi})));
  TRY(trial.attach(settings.has_latency != 0, by_return_address));
  if (settings.has_latency) TRY(trial.measure(found));
  return found;
}

}  // namespace

Result<Calibration> calibrate(const uprobe_settings& settings, Attach attach, bool by_return_address) {
  uprobe_settings own = settings;
  own.filter = UPROBE_ONE_PROCESS;
  own.process = static_cast<uint32_t>(getpid());
  own.inherit = 0;
  own.shards = 1;
  own.rate_limit = 0;
  own.has_stacks = 0;  // what a walk takes is measured each time
  for (size_t i = 0; i < 2; i++) own.self_ns[i] = own.pair_ns[i] = 0;
  if (attach == Attach::kSingle) return try_out(own, false, by_return_address);
  auto multi = try_out(own, true, by_return_address);
  if (multi || attach == Attach::kMulti) return multi;
  return try_out(own, false, by_return_address);
}

}  // namespace cprof::uprobe
