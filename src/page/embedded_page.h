// The built page (ui/), as it lies in this program. docs/page.md says how it is built and proved fresh.
#pragma once

#include <string_view>

namespace cprof::page {

std::string_view embedded_page();

// Where the profile goes in an exported file.
inline constexpr std::string_view kDataMark = "<!--cprof:data-->";

}  // namespace cprof::page
