#include "serve/gate.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>

namespace cprof::serve {

bool Gate::is_own_host(std::string_view host) const {
  for (const std::string_view name : {"127.0.0.1", "localhost", "[::1]"})
    if (host == fmt::format("{}:{}", name, port_)) return true;
  return false;
}

// A name that a stranger's DNS points at 127.0.0.1 comes with that name as Host; a stranger's page comes with its own Origin.
std::optional<Answer> Gate::refusal(const Request& request, const Target& target, std::string& rest) const {
  if (!is_own_host(request.host)) return failed(403, "this server answers to 127.0.0.1, localhost and [::1] only\n");
  if (!request.fetch_site.empty() && request.fetch_site != "same-origin" && request.fetch_site != "none")
    return failed(403, "asked for by another site\n");
  if (!request.origin.empty() && (!request.origin.starts_with("http://") || !is_own_host(std::string_view(request.origin).substr(7))))
    return failed(403, "asked for by another origin\n");
  if (request.method == "POST" && request.origin.empty()) return failed(403, "a POST without an Origin\n");
  if (request.method != "GET" && request.method != "POST") return failed(405, "GET and POST only\n");
  const std::string_view path = target.path;
  const size_t end = path.find('/', 1);
  if (!equal_secret(path.substr(1, end == std::string_view::npos ? end : end - 1), token_)) return failed(404, "not found\n");
  rest = end == std::string_view::npos ? "" : path.substr(end);
  return std::nullopt;
}

std::string Gate::new_token() {
  std::array<unsigned char, 16> bytes{};
  for (size_t got = 0; got < bytes.size();) {
    const ssize_t n = getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (n > 0) got += static_cast<size_t>(n);
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace cprof::serve
