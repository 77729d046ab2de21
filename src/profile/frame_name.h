// How code without a symbol is called, and how such names are recognised. Used by whoever names frames (analyze, the
// pipeline) or must tell a real name from a stand-in (timeline). Pure text.
#pragma once

#include <string>
#include <string_view>

#include "profile/profile.h"

namespace cprof::profile {

inline constexpr std::string_view kUnknownFrame =
    "[unknown]";  // a sample without any stack, a frame without an address
inline constexpr std::string_view kTruncatedFrame = "[truncated]";  // root-side mark of a stack that was cut

// "/usr/lib/libx.so.1" -> "libx.so.1", "[vdso]" -> "[vdso]", "//anon" -> "anon".
std::string_view base_name(std::string_view path);

// "[libx.so+0x4080]", "[kernel+0xffffffff81000010]", "[0x4080]" without a mapping, "[unknown]" without an address.
std::string stand_in_name(const Profile& profile, const Location& location);

// Whether a name is of those shapes: it says where the code is, not what it is.
bool is_stand_in(std::string_view name);

// Whether a name is one that CPython gives to the code of a Python function: "py::Class.method:/path/file.py". Names of C++
// functions in a namespace py are not taken for one.
bool is_python_name(std::string_view name);

}  // namespace cprof::profile
