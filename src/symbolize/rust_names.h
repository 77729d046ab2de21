// Rust's two manglings. Own decoders because LLVM's has no bound on what back references expand to. Called by Demangler.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cprof::symbolize {

// "_ZN4core3fmt5write17h0123456789abcdefE" -> "core::fmt::write"; nothing when it is no such name.
std::optional<std::string> demangle_rust_legacy(std::string_view mangled);

// "_R..." by the v0 grammar (Rust RFC 2603), printed as rustfilt does: no crate hashes, no constant types.
// Nothing when malformed or over the budget. short_form: without generic arguments.
std::optional<std::string> demangle_rust_v0(std::string_view mangled, bool short_form);

// Appends a code point as UTF-8; false when it is none.
bool append_utf8(std::string& out, uint32_t code_point);

}  // namespace cprof::symbolize
