// Each operation is started asynchronously with a deadline on its stream and run to its end before the next is started:
// Beast has time-outs for asynchronous operations only. Names are resolved by getaddrinfo on this thread (a resolver
// thread could not be ended, and the symbol sandbox forks), with the resolver's own time-outs shortened.
#include "symbolize/debuginfod/http_get.h"

#include <fmt/format.h>
#include <netdb.h>
#include <resolv.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <cstdlib>
#include <memory>

#include "base/ascii.h"

namespace cprof::symbolize {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr uint32_t kMaxHeaderBytes = 16 << 10;
constexpr size_t kPiece = 64 << 10;

struct Url {
  bool secure = false;
  std::string host, port, target;

  std::string authority() const { return port == (secure ? "443" : "80") ? host : host + ":" + port; }
};

bool is_sound(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

std::optional<Url> parse_url(std::string_view text) {
  Url url;
  if (!is_sound(text)) return std::nullopt;
  url.secure = text.starts_with("https://");
  if (!url.secure && !text.starts_with("http://")) return std::nullopt;
  text.remove_prefix(url.secure ? 8 : 7);
  size_t slash = std::min(text.find('/'), text.size());
  std::string_view authority = text.substr(0, slash);
  url.target = slash < text.size() ? std::string(text.substr(slash)) : "/";
  if (authority.find('@') != authority.npos) return std::nullopt;
  size_t host_end = authority.starts_with('[') ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (host_end == authority.npos) return std::nullopt;
  if (authority.starts_with('[')) host_end++;
  url.host = authority.substr(0, host_end);
  std::string_view rest = authority.substr(host_end);
  if (!rest.empty() && !rest.starts_with(':')) return std::nullopt;
  url.port = rest.size() > 1 ? std::string(rest.substr(1)) : url.secure ? "443" : "80";
  bool digits = std::ranges::all_of(url.port, is_digit);
  return digits && !url.host.empty() && url.port.size() <= 5 ? std::optional(url) : std::nullopt;
}

// A Location may lack the scheme, the host or the directory: those of the address before then.
std::string joined_url(const Url& base, std::string_view location) {
  const std::string_view scheme = base.secure ? "https" : "http";
  if (location.find("://") < location.find_first_of("/?")) return std::string(location);
  if (location.starts_with("//")) return fmt::format("{}:{}", scheme, location);
  const std::string_view target = std::string_view(base.target).substr(0, base.target.find('?'));
  const std::string_view directory = location.starts_with('/') ? "" : target.substr(0, target.rfind('/') + 1);
  return fmt::format("{}://{}{}{}", scheme, base.authority(), directory, location);
}

std::vector<asio::ip::tcp::endpoint> addresses_of(const Url& url, std::string& problem) {
  res_init();
  _res.retrans = 2;
  _res.retry = 1;
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  std::string host = url.host.starts_with('[') ? url.host.substr(1, url.host.size() - 2) : url.host;
  std::vector<asio::ip::tcp::endpoint> result;
  int status = getaddrinfo(host.c_str(), url.port.c_str(), &hints, &found);
  if (status != 0) problem = gai_strerror(status);
  for (addrinfo* entry = found; entry; entry = entry->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (entry->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), entry->ai_addr, entry->ai_addrlen);
    endpoint.resize(entry->ai_addrlen);
    result.push_back(endpoint);
  }
  if (found) freeaddrinfo(found);
  return result;
}

// Where the distributions keep their certificates: the archive of OpenSSL knows the place of the one it was built on.
void trust_the_systems_certificates(asio::ssl::context& context) {
  error_code ignored;
  context.set_default_verify_paths(ignored);
  if (getenv("SSL_CERT_FILE")) return;
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"})
    context.load_verify_file(path, ignored);
}

class Exchange {
 public:
  Exchange(const Url& url, const HttpLimits& limits, const HttpConsumer& on_bytes)
      : url_(url), limits_(limits), on_bytes_(on_bytes) {}

  HttpAnswer run();
  const std::string& location() const { return location_; }

 private:
  HttpAnswer server_fault(std::string_view step, const error_code& error) const {
    std::string_view why = error == beast::error::timeout ? "no answer in time" : "";
    return {HttpFault::kServer, fmt::format("{}: {}", step, why.empty() ? error.message() : std::string(why)), 0};
  }
  HttpAnswer fault(HttpFault kind, std::string problem) const { return {kind, std::move(problem), 0}; }

  // Runs what was started to its end.
  void wait() {
    context_.restart();
    context_.run();
  }
  error_code connect(beast::tcp_stream& stream, std::string& problem);
  template <typename Stream>
  HttpAnswer talk(Stream& stream, beast::tcp_stream& lowest);
  template <typename Stream, typename Parser>
  HttpAnswer take_body(Stream& stream, beast::tcp_stream& lowest, Parser& parser);
  uint64_t announced_size(const http::fields& head, const boost::optional<uint64_t>& length) const;

  const Url& url_;
  const HttpLimits& limits_;
  const HttpConsumer& on_bytes_;
  asio::io_context context_{1};
  beast::flat_buffer buffer_;
  std::string location_;
};

HttpAnswer Exchange::run() {
  std::string problem;
  if (!url_.secure) {
    beast::tcp_stream stream(context_);
    if (error_code error = connect(stream, problem)) return problem.empty() ? server_fault("connect", error) : fault(HttpFault::kServer, problem);
    return talk(stream, stream);
  }
  asio::ssl::context tls(asio::ssl::context::tls_client);
  trust_the_systems_certificates(tls);
  beast::ssl_stream<beast::tcp_stream> stream(context_, tls);
  beast::tcp_stream& lowest = beast::get_lowest_layer(stream);
  if (error_code error = connect(lowest, problem)) return problem.empty() ? server_fault("connect", error) : fault(HttpFault::kServer, problem);
  stream.set_verify_mode(asio::ssl::verify_peer);
  stream.set_verify_callback(asio::ssl::host_name_verification(url_.host));
  SSL_set_tlsext_host_name(stream.native_handle(), url_.host.c_str());
  error_code result;
  lowest.expires_after(limits_.first_byte);
  stream.async_handshake(asio::ssl::stream_base::client, [&](error_code error) { result = error; });
  wait();
  if (result) return server_fault("TLS", result);
  return talk(stream, lowest);
}

error_code Exchange::connect(beast::tcp_stream& stream, std::string& problem) {
  error_code result = asio::error::host_not_found;
  for (const asio::ip::tcp::endpoint& address : addresses_of(url_, problem)) {
    stream.expires_after(limits_.connect);
    stream.async_connect(address, [&](error_code error) { result = error; });
    wait();
    if (!result) break;
    stream.close();
  }
  return result;
}

template <typename Stream>
HttpAnswer Exchange::talk(Stream& stream, beast::tcp_stream& lowest) {
  http::request<http::empty_body> request(http::verb::get, url_.target, 11);
  request.set(http::field::host, url_.authority());
  request.set(http::field::user_agent, "cprof/" CPROF_VERSION);
  request.set(http::field::accept, "*/*");
  request.set(http::field::connection, "close");
  error_code result;
  auto note = [&](error_code error, size_t) { result = error; };
  lowest.expires_after(limits_.first_byte);
  http::async_write(stream, request, note);
  wait();
  if (result) return server_fault("request", result);

  http::response_parser<http::buffer_body> parser;
  parser.header_limit(kMaxHeaderBytes);
  parser.body_limit(limits_.max_bytes);
  http::async_read_header(stream, buffer_, parser, note);  // under the same deadline
  wait();
  if (result == http::error::body_limit) return fault(HttpFault::kAnswer, fmt::format("larger than {} bytes", limits_.max_bytes));
  if (result) return server_fault("answer", result);
  HttpAnswer answer;
  answer.status = parser.get().result_int();
  location_ = std::string(parser.get()[http::field::location]);
  if (answer.status != 200) return answer;
  auto encoding = parser.get()[http::field::content_encoding];
  if (!encoding.empty() && encoding != "identity")
    return fault(HttpFault::kAnswer, fmt::format("an unasked content encoding, '{}'", std::string_view(encoding.data(), encoding.size()).substr(0, 40)));
  HttpAnswer body = take_body(stream, lowest, parser);
  body.status = answer.status;
  return body;
}

// elfutils' server sends large files in chunks and tells their size in a header of its own.
uint64_t Exchange::announced_size(const http::fields& head, const boost::optional<uint64_t>& length) const {
  if (length) return *length;
  std::string text(head["X-DEBUGINFOD-SIZE"]);
  return strtoull(text.c_str(), nullptr, 10);
}

template <typename Stream, typename Parser>
HttpAnswer Exchange::take_body(Stream& stream, beast::tcp_stream& lowest, Parser& parser) {
  std::vector<std::byte> piece(kPiece);
  const uint64_t size = announced_size(parser.get(), parser.content_length());
  uint64_t in_window = 0;
  error_code result;
  lowest.expires_after(limits_.window);
  auto window_end = std::chrono::steady_clock::now() + limits_.window;
  while (!parser.is_done()) {
    parser.get().body().data = piece.data();
    parser.get().body().size = piece.size();
    http::async_read_some(stream, buffer_, parser, [&](error_code error, size_t) { result = error; });
    wait();
    if (result == http::error::need_buffer) result = {};
    if (result == http::error::body_limit) return fault(HttpFault::kAnswer, fmt::format("larger than {} bytes", limits_.max_bytes));
    if (result) return server_fault("download", result);
    size_t count = piece.size() - parser.get().body().size;
    in_window += count;
    if (auto taken = on_bytes_(std::span(piece).first(count), size); !taken) return fault(HttpFault::kConsumer, taken.error().message);
    if (std::chrono::steady_clock::now() < window_end && in_window < limits_.bytes_per_window) continue;
    if (in_window < limits_.bytes_per_window && !parser.is_done()) return fault(HttpFault::kServer, "download: too slow");
    in_window = 0;
    lowest.expires_after(limits_.window);
    window_end = std::chrono::steady_clock::now() + limits_.window;
  }
  return {};
}

bool is_redirection(unsigned status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }

}  // namespace

HttpAnswer http_get(const std::string& address, const HttpLimits& limits, const HttpConsumer& on_bytes) {
  std::string at = address;
  for (unsigned hops = 0; hops <= limits.max_redirections; hops++) {
    auto url = parse_url(at);
    if (!url) return {HttpFault::kServer, fmt::format("'{}' is not an http or https address", at.substr(0, 200)), 0};
    Exchange exchange(*url, limits, on_bytes);
    HttpAnswer answer = exchange.run();
    bool moved = answer.fault == HttpFault::kNone && is_redirection(answer.status) && !exchange.location().empty();
    if (!moved) return answer;
    std::string next = joined_url(*url, exchange.location());
    if (url->secure && !next.starts_with("https://")) return {HttpFault::kServer, "redirected from https to something else", 0};
    at = std::move(next);
  }
  return {HttpFault::kServer, "redirected too often", 0};
}

}  // namespace cprof::symbolize
