// The profile as the page reads it: "CPV1", described in docs/page-payload.md. Used by the HTML writer and the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"

namespace cprof::page {

struct PayloadOptions {
  size_t max_nodes = 2'000'000;  // above, the lightest are taken together and the page says so
  size_t max_rows = 5'000'000;   // above, single samples are left out: no timeline, no filter by thread or time
  bool with_source = false;      // puts the lines of source around what costs into the payload
  std::vector<std::string> source_roots = {};
};

// What the page's function numbers stand for.
struct FunctionKey {
  std::string name, module, file;
};

// Uncompressed.
std::string encode_payload(const profile::Profile& profile, const PayloadOptions& options = {},
                           std::vector<FunctionKey>* functions = nullptr);
// As it travels: gzip.
Result<std::string> pack_payload(const std::string& payload);

}  // namespace cprof::page
