// Marks what is used, from the samples up to the root of each stack and down to files and texts, then makes a second
// profile of the marked rows in their old order: parents stay before their children, and equal runs stay equal.
#include "profile/keep.h"

#include <algorithm>
#include <utility>

namespace cprof::profile {
namespace {

class Keeper {
 public:
  Keeper(Profile old, uint64_t since_ns) : old_(std::move(old)), since_ns_(since_ns) {
    threads_.resize(old_.threads.size());
    sites_.resize(old_.sites.size());
  }

  Renumbering run(std::span<const CallSiteId> used) {
    for (CallSiteId site : used) mark(site);
    mark_rows();
    copy_run();
    for (size_t i = 0; i < threads_.size(); ++i)
      if (threads_[i]) transfer_.thread(ThreadId(i));
    for (size_t i = 0; i < old_.tracks.size(); ++i) transfer_.track(TrackId(i));  // all, so that their numbers stay
    for (size_t i = 0; i < sites_.size(); ++i)
      if (sites_[i]) transfer_.site(CallSiteId(i));
    copy_rows();
    return transfer_.numbers();
  }
  ProfileBuilder take() { return std::move(new_); }

 private:
  bool is_kept(const Sample& sample) const { return sample.time_ns >= since_ns_; }
  bool is_kept(const SwitchInterval& on) const { return on.end_ns >= since_ns_; }
  bool is_kept(const OffCpuInterval& off) const { return off.end_ns >= since_ns_; }
  bool is_kept(const Slice& slice) const { return slice.is_open || slice.start_ns + slice.duration_ns >= since_ns_; }
  bool is_kept(const Mark& mark) const { return mark.time_ns >= since_ns_; }
  bool is_kept(const CounterValue& value) const { return value.time_ns >= since_ns_; }

  void mark(CallSiteId site) {
    if (site.valid()) sites_[site.index()] = true;
  }
  void mark(ThreadId thread) {
    if (thread.valid()) threads_[thread.index()] = true;
  }

  void mark_rows() {
    for (const Sample& sample : old_.samples)
      if (is_kept(sample)) mark(sample.site), mark(sample.thread);
    for (const Aggregate& row : old_.aggregates) mark(row.site), mark(row.thread);
    for (const SwitchInterval& on : old_.on_cpu)
      if (is_kept(on)) mark(on.thread);
    for (const OffCpuInterval& off : old_.off_cpu)
      if (is_kept(off)) mark(off.site), mark(off.thread), mark(off.waker);
    for (const Slice& slice : old_.slices)
      if (is_kept(slice)) mark(slice.thread);
    for (const Mark& mark_row : old_.marks)
      if (is_kept(mark_row)) mark(mark_row.thread);
    for (const Track& track : old_.tracks) mark(track.thread);
    for (size_t i = old_.sites.size(); i-- > 0;)
      if (sites_[i]) mark(old_.sites[i].parent);
  }

  void copy_run() {
    Profile& profile = new_.profile();
    profile.run = std::move(old_.run);
    profile.diagnostics = std::move(old_.diagnostics);
    if (since_ns_ > profile.run.start_ns) {
      if (profile.run.start_realtime_ns) profile.run.start_realtime_ns += since_ns_ - profile.run.start_ns;
      profile.run.start_ns = since_ns_;
    }
    for (size_t i = 0; i < old_.metrics.size(); ++i) transfer_.add_metric(MetricId(i));
    profile.run.default_metric = transfer_.text(profile.run.default_metric);
  }

  void copy_rows() {
    Profile& profile = new_.profile();
    for (const Sample& sample : old_.samples)
      if (is_kept(sample)) new_.add_sample(transfer_.moved(sample));
    for (const Aggregate& row : old_.aggregates) new_.add_aggregate(transfer_.moved(row));
    for (const SwitchInterval& on : old_.on_cpu) {
      if (!is_kept(on)) continue;
      profile.on_cpu.push_back(transfer_.moved(on));
      profile.on_cpu.back().start_ns = std::max(on.start_ns, since_ns_);
    }
    for (const OffCpuInterval& off : old_.off_cpu) {
      if (!is_kept(off)) continue;
      OffCpuInterval& row = profile.off_cpu.emplace_back(transfer_.moved(off));
      row.start_ns = std::max(off.start_ns, since_ns_);
      if (off.woken_ns) row.woken_ns = std::max(off.woken_ns, row.start_ns);
    }
    copy_kept(old_.slices, profile.slices);
    copy_kept(old_.marks, profile.marks);
    copy_kept(old_.counters, profile.counters);
  }

  template <typename Row>
  void copy_kept(const std::vector<Row>& rows, std::vector<Row>& into) {
    for (const Row& row : rows)
      if (is_kept(row)) into.push_back(transfer_.moved(row));
  }

  Profile old_;
  uint64_t since_ns_;
  ProfileBuilder new_;
  SharedPlaces places_;
  Transfer transfer_{old_, new_, places_};
  std::vector<bool> threads_, sites_;
};

}  // namespace

Renumbering keep_since(ProfileBuilder& builder, uint64_t since_ns, std::span<const CallSiteId> used) {
  Keeper keeper(std::move(builder.profile()), since_ns);
  Renumbering map = keeper.run(used);
  builder = keeper.take();
  return map;
}

}  // namespace cprof::profile
