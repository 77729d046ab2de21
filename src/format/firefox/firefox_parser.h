// JSON text to the columns of a FirefoxFile. Used by firefox.cc; one thread.
#pragma once

#include "format/firefox/firefox_file.h"
#include "format/json/json_stream.h"
#include "profile/builder.h"

namespace cprof::format {

// Texts are interned in the builder. Errors tell the byte.
Result<FirefoxFile> parse_firefox(JsonStream& json, profile::ProfileBuilder& builder);

}  // namespace cprof::format
