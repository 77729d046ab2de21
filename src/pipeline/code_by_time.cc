#include "pipeline/code_by_time.h"

#include <vector>

namespace cprof::pipeline {
namespace {

using profile::CallSite;
using profile::CallSiteId;

class Placer {
 public:
  Placer(profile::ProfileBuilder& builder, std::span<const profile::LocationId> changing, const LocationAt& location_at)
      : builder_(builder), location_at_(location_at), changes_(builder.profile().locations.size()), is_affected_(builder.profile().sites.size()) {
    for (profile::LocationId id : changing) changes_[id.index()] = true;
    const std::vector<CallSite>& sites = builder_.profile().sites;
    for (size_t i = 0; i < sites.size(); i++)
      is_affected_[i] = changes_[sites[i].location.index()] || (sites[i].parent.valid() && is_affected_[sites[i].parent.index()]);
  }

  CallSiteId site_at(CallSiteId site, uint64_t time_ns) {
    path_.clear();
    for (; site.valid() && is_affected_[site.index()]; site = builder_.profile().sites[site.index()].parent)
      path_.push_back(builder_.profile().sites[site.index()].location);
    for (size_t i = path_.size(); i-- > 0;)
      site = builder_.site(site, changes_[path_[i].index()] ? location_at_(path_[i], time_ns) : path_[i]);
    return site;
  }

 private:
  profile::ProfileBuilder& builder_;
  const LocationAt& location_at_;
  std::vector<bool> changes_, is_affected_;  // by location, by site, as they were
  std::vector<profile::LocationId> path_;    // leaf first
};

}  // namespace

void place_by_time(profile::ProfileBuilder& builder, std::span<const profile::LocationId> changing, const LocationAt& location_at) {
  Placer placer(builder, changing, location_at);
  for (profile::Sample& sample : builder.profile().samples) sample.site = placer.site_at(sample.site, sample.time_ns);
  for (profile::OffCpuInterval& wait : builder.profile().off_cpu) wait.site = placer.site_at(wait.site, wait.start_ns);
}

}  // namespace cprof::pipeline
