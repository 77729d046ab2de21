// A recording's rows back as the profile they were made of. Used by the .cprof format and by whoever opens a recording.
// One thread. The database may be anything: what is not a recording as cprof writes it is an error that says which table
// and row; views, triggers and other tables in it are never run.
#pragma once

#include "base/result.h"
#include "profile/profile.h"
#include "store/database.h"

namespace cprof::store {

// The profile is valid (profile/validate.h). The database is of no other use then: views are off, values are limited.
Result<profile::Profile> read_profile(Database& database);

}  // namespace cprof::store
