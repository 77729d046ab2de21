// Markers as slices and marks: each name of a thread has a track of its own, as the Firefox Profiler shows them, and where
// markers of one name overlap, further ones. Used by firefox_to_profile.cc; one thread.
#pragma once

#include "base/result.h"
#include "format/firefox/firefox_file.h"
#include "profile/builder.h"

namespace cprof::format {

Result<void> add_markers(const FirefoxMarkers& markers, const std::vector<StringId>& strings, const FirefoxFile& file,
                         profile::ThreadId thread, profile::ProfileBuilder& builder);

}  // namespace cprof::format
