// Generated code may give way to other code at its place: which one a sample saw, its time tells. Sites are made of addresses
// alone as a run goes on; this gives those samples and waits, whose stacks such places are in, sites of their own. Used by
// Namer, once, when a run has ended. Values without times keep what they have.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "profile/builder.h"

namespace cprof::pipeline {

// The location that stands for this one's address at a time: itself, or another row.
using LocationAt = std::function<profile::LocationId(profile::LocationId, uint64_t time_ns)>;

void place_by_time(profile::ProfileBuilder& builder, std::span<const profile::LocationId> changing, const LocationAt& location_at);

}  // namespace cprof::pipeline
