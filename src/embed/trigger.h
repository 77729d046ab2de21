// CPROF=signal=USR1,seconds=N: a session of N seconds whenever the program gets that signal. The handler only wakes a thread of the
// library, which starts, waits, stops and writes; signals that come meanwhile do nothing.
#pragma once

#include <string>

#include "base/result.h"
#include "embed/options.h"

namespace cprof::embed {

Result<void> install_trigger(const Options& options, const std::string& text);
// The waiting thread is not in a forked child: it is made anew there when children are recorded.
void renew_trigger_in_child();

}  // namespace cprof::embed
