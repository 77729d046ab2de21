// Requests and answers as the page's server handles them, apart from sockets: what is asked, and what is said.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace cprof::serve {

struct Request {
  std::string method;       // "GET", "POST"
  std::string target;       // "/TOKEN/api/profile?f=0"
  std::string host;         // the Host header; "" none
  std::string origin;       // the Origin header; "" none
  std::string fetch_site;   // Sec-Fetch-Site; "" none
  std::string body;         // of small requests
  std::string body_path;    // where the body of an upload lies; removed by whoever made it
  std::function<bool()> is_gone;  // whether who asked does not wait any more; empty: not known
};

struct Answer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  Fd body_file;             // instead of body, when there is one: sent from its begin
  std::string download_name;
};

Answer failed(int status, std::string text);

// "/a/b?x=1&y=%20z" as its path and decoded parameters; nothing for what is not well formed.
struct Target {
  std::string path;
  std::map<std::string, std::string, std::less<>> parameters;
  std::string_view parameter(std::string_view name) const;
  std::optional<uint64_t> number(std::string_view name) const;
};
std::optional<Target> parse_target(std::string_view target);

// Equal in a time that does not depend on where they differ.
bool equal_secret(std::string_view a, std::string_view b);

}  // namespace cprof::serve
