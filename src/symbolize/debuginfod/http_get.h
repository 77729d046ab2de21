// One HTTP GET, bounded in every way a server can be slow or lie: connecting, the first byte, the rate, the size, the
// headers, the redirections. http and https. Called by DebuginfodClient only; one thread, no thread of its own, no proxy.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"

namespace cprof::symbolize {

struct HttpLimits {
  std::chrono::milliseconds connect{5'000};      // of each address of a name
  std::chrono::milliseconds first_byte{10'000};  // from the request to the answer's head
  std::chrono::milliseconds window{10'000};      // in each so long
  uint64_t bytes_per_window = 64 << 10;          // so much must come
  uint64_t max_bytes = uint64_t{4} << 30;
  unsigned max_redirections = 4;
};

enum class HttpFault : uint8_t {
  kNone,
  kServer,    // cannot be reached, too slow, breaks off, or does not speak HTTP: not worth asking again
  kAnswer,    // this answer cannot be taken: too large, or encoded
  kConsumer,  // on_bytes said no
};

struct HttpAnswer {
  HttpFault fault = HttpFault::kNone;
  std::string problem;  // one plain line, when there is a fault
  unsigned status = 0;
};

// size: what the server announced, 0 unknown. An Error ends the transfer. Called for the body of a 200 only.
using HttpConsumer = std::function<Result<void>(std::span<const std::byte> bytes, uint64_t size)>;

HttpAnswer http_get(const std::string& url, const HttpLimits& limits, const HttpConsumer& on_bytes);

}  // namespace cprof::symbolize
