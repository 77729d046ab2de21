// The whole page and the profile in one offline file. docs/page.md. Written only.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& html_format();

Result<void> write_html(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
