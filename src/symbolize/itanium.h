// Itanium C++ names through LLVM's parser, with what LLVM does not have: a bound on recursion, on nodes and on the size
// of the output, which a name of 200 bytes can otherwise blow up to gigabytes. Called by Demangler only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cprof::symbolize {

// Nothing when the name is malformed or over the budget. short_form: without parameters and template arguments.
std::optional<std::string> demangle_itanium(std::string_view mangled, bool short_form);

// "a<b<c>>::d(int)::operator<<(x)" -> "a<>::d::operator<<". A '<' that begins a path segment (Rust's "<T as U>::f")
// is kept.
std::string shorten_name(std::string_view full);

}  // namespace cprof::symbolize
