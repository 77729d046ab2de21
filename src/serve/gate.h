// Who may ask the page's server: it listens on loopback only, but every page in every browser on the machine can reach that.
// Pure; used by the router before anything else is looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "serve/http.h"

namespace cprof::serve {

class Gate {
 public:
  // token: of 128 random bits, part of every address.
  Gate(std::string token, uint16_t port) : token_(std::move(token)), port_(port) {}

  // The refusal, or nothing: then rest is the path below "/TOKEN", such as "/api/files".
  std::optional<Answer> refusal(const Request& request, const Target& target, std::string& rest) const;

  static std::string new_token();
  const std::string& token() const { return token_; }

 private:
  bool is_own_host(std::string_view host) const;

  std::string token_;
  uint16_t port_;
};

}  // namespace cprof::serve
