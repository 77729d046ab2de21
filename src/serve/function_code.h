// Source and instructions of one function of a profile as JSON for the page. Only files that the debug info names are read,
// and only the binary that was recorded is disassembled.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "page/payload.h"
#include "profile/profile.h"
#include "source/source_files.h"

namespace cprof::serve {

// {file, first_line, lines, changed}
Result<nlohmann::json> function_source(const profile::Profile& profile, const page::FunctionKey& function, source::SourceFiles& files);

// {lines: [{address, text, line, self}], note}: the function's own code, self in the metric (the page's number).
Result<nlohmann::json> function_code(const profile::Profile& profile, const page::FunctionKey& function, uint64_t metric);

}  // namespace cprof::serve
