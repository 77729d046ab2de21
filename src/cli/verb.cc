#include "cli/verb.h"

#include <fmt/format.h>

#include <cstdio>

namespace cprof::cli {

int fail_with(const Error& error) {
  say(fmt::format("cprof: {}", error.message));
  return kFailed;
}

int wrong_usage(const Error& error) {
  fail_with(error);
  return kWrongUsage;
}

void say(std::string_view text) { fmt::print(stderr, "{}\n", text); }

}  // namespace cprof::cli
