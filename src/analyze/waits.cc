#include "analyze/waits.h"

#include <algorithm>
#include <unordered_map>

#include "analyze/frames.h"
#include "analyze/weights.h"

namespace cprof::analyze {
namespace {

using profile::OffCpuInterval;
using profile::Profile;
using profile::WaitClass;

constexpr size_t kFramesShown = 3;

// take(class, ns) for the waiting part, then for the runnable one.
template <typename Take>
void for_each_part(const OffCpuInterval& off, Take&& take) {
  if (off.runnable_ns() > off.start_ns) take(off.wait_class, off.runnable_ns() - off.start_ns);
  if (off.end_ns > off.runnable_ns()) take(WaitClass::kSched, off.end_ns - off.runnable_ns());
}

// Texts of user frames, once for each site.
class Places {
 public:
  explicit Places(const Profile& profile) : profile_(profile), walker_(profile) {}

  const std::string& of(profile::CallSiteId site) {
    const profile::CallSiteId user = profile::user_part(profile_, site);
    auto [it, is_new] = texts_.try_emplace(user.value);
    if (is_new) it->second = text_of(user);
    return it->second;
  }

 private:
  std::string text_of(profile::CallSiteId user) {
    const auto frames = walker_.frames(user);
    std::string text;
    for (size_t i = 0; i < std::min(kFramesShown, frames.size()); ++i) {
      if (i) text += " < ";
      text += frames[frames.size() - 1 - i].name;
    }
    return text;
  }

  const Profile& profile_;
  FrameWalker walker_;
  std::unordered_map<uint32_t, std::string> texts_;
};

}  // namespace

WaitTotals wait_totals(const Profile& profile) {
  WaitTotals totals;
  for (const OffCpuInterval& off : profile.off_cpu) {
    totals.ns += off.duration_ns();
    ++totals.waits;
    for_each_part(off, [&](WaitClass wait_class, uint64_t ns) {
      WaitTotals::OfClass& row = totals.by_class[static_cast<size_t>(wait_class)];
      row.ns += ns;
      ++row.count;
    });
  }
  return totals;
}

std::vector<TopWait> top_waits(const Profile& profile, size_t most) {
  Places places(profile);
  std::vector<TopWait> rows;
  std::unordered_map<std::string, size_t> row_of;
  for (const OffCpuInterval& off : profile.off_cpu) {
    const std::string& where = places.of(off.site);
    for_each_part(off, [&](WaitClass wait_class, uint64_t ns) {
      auto [it, is_new] = row_of.try_emplace(where + '\0' + static_cast<char>(wait_class), rows.size());
      if (is_new) rows.push_back({.where = where, .wait_class = wait_class});
      TopWait& row = rows[it->second];
      row.ns = add_clamped(row.ns, static_cast<int64_t>(std::min<uint64_t>(ns, INT64_MAX)));
      ++row.count;
    });
  }
  std::ranges::stable_sort(rows, std::ranges::greater{}, &TopWait::ns);
  rows.resize(std::min(most, rows.size()));
  return rows;
}

}  // namespace cprof::analyze
