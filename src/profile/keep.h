// Takes from a profile that grows what happened lately: the samples, and the stacks, places, threads and texts that they
// still use, with new numbers. Called by the pipeline of a recording that keeps only its last seconds. Memory is then in
// proportion to what is kept, however much was seen before.
#pragma once

#include <iterator>
#include <span>
#include <vector>

#include "profile/builder.h"
#include "profile/transfer.h"

namespace cprof::profile {

// The values of a map are row numbers: they become the new ones, and entries of rows that are gone go too.
template <typename Map, typename Ids>
void renumber(Map& rows, const Ids& numbers) {
  for (auto it = rows.begin(); it != rows.end();) {
    it->second = numbers[it->second.index()];
    it = it->second.valid() ? std::next(it) : rows.erase(it);
  }
}

// Puts into `builder` what it holds from since_ns on; untimed values stay whole. `used`: sites that are kept even when no
// sample has them. For profiles that are not named yet. Metrics and diagnostics stay, the run begins at since_ns.
Renumbering keep_since(ProfileBuilder& builder, uint64_t since_ns, std::span<const CallSiteId> used = {});

}  // namespace cprof::profile
