#include "analyze/threads.h"

#include <algorithm>

namespace cprof::analyze {

std::vector<ThreadRow> thread_table(const profile::Profile& profile, const Weights& weights) {
  const size_t none = profile.threads.size();
  std::vector<ThreadRow> rows(none + 1);
  for (size_t i = 0; i < none; ++i) rows[i].thread = profile::ThreadId(i);
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const profile::Sample& sample = profile.samples[i];
    ThreadRow& row = rows[sample.thread.index()];
    if (row.samples++ == 0) row.first_ns = sample.time_ns;
    row.last_ns = sample.time_ns;
    row.weight = add_clamped(row.weight, weights.of_samples[i]);
  }
  for (size_t i = 0; i < profile.aggregates.size(); ++i) {
    const profile::ThreadId thread = profile.aggregates[i].thread;
    ThreadRow& row = rows[thread.valid() ? thread.index() : none];
    row.weight = add_clamped(row.weight, weights.of_aggregates[i]);
  }
  for (const auto* part : {&weights.of_off_cpu, &weights.of_resumed})
    for (size_t i = 0; i < part->size(); ++i) {
      ThreadRow& row = rows[profile.off_cpu[i].thread.index()];
      row.weight = add_clamped(row.weight, (*part)[i]);
    }
  for (const profile::SwitchInterval& on : profile.on_cpu) rows[on.thread.index()].on_cpu_ns += on.end_ns - on.start_ns;

  std::erase_if(rows, [](const ThreadRow& r) { return r.samples == 0 && r.weight == 0 && r.on_cpu_ns == 0; });
  std::ranges::stable_sort(rows, [](const ThreadRow& a, const ThreadRow& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.on_cpu_ns > b.on_cpu_ns;
  });
  return rows;
}

}  // namespace cprof::analyze
