#include "store/run_facts.h"

#include <array>

namespace cprof::store {
namespace {

using profile::RunInfo;

constexpr auto kFacts = std::to_array<RunFact>({
    {.name = "tool", .text = &RunInfo::tool},
    {.name = "command", .text = &RunInfo::command},
    {.name = "hostname", .text = &RunInfo::hostname},
    {.name = "kernel_release", .text = &RunInfo::kernel_release},
    {.name = "source", .text = &RunInfo::source},
    {.name = "start_ns", .number = &RunInfo::start_ns},
    {.name = "end_ns", .number = &RunInfo::end_ns},
    {.name = "start_realtime_ns", .number = &RunInfo::start_realtime_ns},
    {.name = "sampling_interval_ns", .number = &RunInfo::sampling_interval_ns},
    {.name = "has_switches", .flag = &RunInfo::has_switches},
    {.name = "has_off_cpu", .flag = &RunInfo::has_off_cpu},
    {.name = "is_unfinished", .flag = &RunInfo::is_unfinished},
    {.name = "collector_cpu_ns", .number = &RunInfo::collector_cpu_ns},
    {.name = "bytes_read", .number = &RunInfo::bytes_read},
    {.name = "period_type", .text = &RunInfo::period_type},
    {.name = "period_unit", .text = &RunInfo::period_unit},
});

}  // namespace

std::span<const RunFact> all_run_facts() { return kFacts; }

}  // namespace cprof::store
