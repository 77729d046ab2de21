// The side of `cprof ctl` that is inside the program: a thread that waits for requests in a shared block and does them. It costs
// nothing while nobody asks. One a process.
#pragma once

#include <string_view>

#include "base/result.h"

namespace cprof::embed {

// options: for a start that brings none of its own.
Result<void> open_control(std::string_view options);
// Neither block nor thread are the child's own: both are made anew where children are recorded, else there is none.
void renew_control_in_child();

}  // namespace cprof::embed
