// The columns of a FirefoxFile as a Profile. Used by firefox.cc; one thread.
#pragma once

#include "base/result.h"
#include "format/firefox/firefox_file.h"
#include "profile/builder.h"

namespace cprof::format {

// The builder is the one that the file's texts are interned in; its run.source is the name for messages.
Result<profile::Profile> firefox_to_profile(FirefoxFile file, profile::ProfileBuilder builder);

}  // namespace cprof::format
