// The command line: cprof COMMAND [OPTIONS]. Exit status: 0 done, 1 failed, 2 wrong usage.
#pragma once

namespace cprof::cli {

int run(int argc, char** argv);

}  // namespace cprof::cli
