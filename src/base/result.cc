#include "base/result.h"

#include <cstdio>
#include <cstring>

namespace cprof {

std::unexpected<Error> fail_errno(std::string what, int error_number) {
  return fail(std::move(what) + ": " + strerror(error_number), error_number);
}

void detail::check_failed(const char* expression, const char* file, int line) {
  fprintf(stderr, "cprof: internal error: %s (%s:%d); please report it\n", expression, file, line);
  abort();
}

}  // namespace cprof
