// Errors as values. Every layer uses this; nothing here prints, exits or throws.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <expected>
#include <string>
#include <utility>

namespace cprof {

struct Error {
  std::string message;  // one plain line: what, where, and how to mend it when known
  int code = 0;         // errno when the kernel gave one
};

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(std::string message, int code = 0) {
  return std::unexpected(Error{std::move(message), code});
}

// "what: strerror(errno)"; takes errno as an argument so that nothing between the call and here can change it.
std::unexpected<Error> fail_errno(std::string what, int error_number = errno);

// Puts "context: " in front of a message as it climbs.
inline Error in_context(std::string context, Error error) {
  error.message = std::move(context) + ": " + error.message;
  return error;
}

namespace detail {
template <typename T, typename E>
T take(std::expected<T, E>& result) {
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
[[noreturn]] void check_failed(const char* expression, const char* file, int line);
}  // namespace detail

}  // namespace cprof

// auto x = TRY(f());  TRY(g());  returns the error from the enclosing function, which must return a Result.
#define TRY(expression)                                                                   \
  ({                                                                                      \
    auto&& try_result = (expression);                                                     \
    if (!try_result) return std::unexpected(std::move(try_result.error()));               \
    ::cprof::detail::take(try_result);                                                    \
  })

// A broken invariant is a bug in cprof: it aborts. Input can never make it fail.
#define CPROF_CHECK(expression) \
  ((expression) ? void(0) : ::cprof::detail::check_failed(#expression, __FILE__, __LINE__))
