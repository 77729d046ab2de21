// The whole page with profiles in it, as one file that needs nothing from anywhere. Used by the HTML writer and by the
// server's export.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "page/payload.h"

namespace cprof::page {

struct PageProfile {
  const profile::Profile* profile = nullptr;
  std::string name;
};

using Sink = std::function<Result<void>(std::string_view)>;

Result<void> write_html_file(std::span<const PageProfile> profiles, const PayloadOptions& options, const Sink& sink);

}  // namespace cprof::page
