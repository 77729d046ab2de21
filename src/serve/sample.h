// A small made-up recording of a server that resizes pictures, for people who open the page without a profile of their own:
// threads, waits, kernel frames, two kinds of time. The same on every call. Used by the page's server.
#pragma once

#include "profile/profile.h"

namespace cprof::serve {

profile::Profile sample_profile();

}  // namespace cprof::serve
