#include "embed/spike_watch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "embed/scopes.h"

namespace cprof::embed {

Result<void> SpikeWatch::add(const Options& options, NameTable& names) {
  for (const ScopeLimit& limit : options.scope_limits)
    if (!of_session_.add(names.of_site(limit.scope), limit.longest_ns))
      return fail(fmt::format("trigger={}: more than {} names", limit.scope, ScopeLimits::kMost));
  return {};
}

void SpikeWatch::see(const cprof_record& record, uint32_t thread) {
  if (kind_of(record.word) != CPROF_KIND_SCOPE_) return;
  const uint32_t name = name_of(record.word);
  const uint64_t limit_ns = std::min(of_session_.of(name), of_program_.of(name));
  if (limit_ns == ScopeLimits::kNone) return;
  const uint64_t start_ns = clock_.to_ns(record.start), end_ns = clock_.to_ns(record.end);
  const uint64_t lasted_ns = end_ns - std::min(start_ns, end_ns);
  if (lasted_ns <= limit_ns) return;
  spikes_++;
  if (!pending_ || pending_->lasted_ns < lasted_ns) pending_ = Spike{name, thread, lasted_ns, limit_ns};
}

std::optional<Spike> SpikeWatch::take(uint64_t now_ns) {
  std::optional<Spike> spike = std::exchange(pending_, std::nullopt);
  if (!spike || (reported_ns_ && now_ns - *reported_ns_ < gap_ns_)) return std::nullopt;
  reported_ns_ = now_ns;
  return spike;
}

}  // namespace cprof::embed
