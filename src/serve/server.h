// The loopback HTTP server: sockets, limits and timeouts. What is answered is the handler's affair. Used by `cprof view`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "serve/http.h"

namespace cprof::serve {

struct ServerOptions {
  uint16_t port = 0;                              // 0: any free one
  uint64_t max_upload_bytes = uint64_t{2} << 30;  // of a body that is written to a file
  std::string page_nonce;                         // scripts that carry it may run
  // Asked when the header is there and before any of the body is read; an answer is a refusal.
  std::function<std::optional<Answer>(const Request&)> refuse;
};

class Server {
 public:
  // Called by as many threads at once as there are connections.
  using Handler = std::function<Answer(const Request&)>;

  // Listens on 127.0.0.1 and, where the machine has it, ::1.
  static Result<std::unique_ptr<Server>> listen(const ServerOptions& options, Handler handler);
  virtual ~Server() = default;

  virtual uint16_t port() const = 0;
  virtual void run() = 0;   // until stop()
  virtual void stop() = 0;  // from any thread
};

}  // namespace cprof::serve
