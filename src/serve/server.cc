// One thread accepts, one a connection reads, handles and writes. Bodies of uploads go to a file as they come, so memory does
// not follow what is sent.
#include "serve/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "base/file.h"

namespace cprof::serve {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using tcp = boost::asio::ip::tcp;

constexpr uint32_t kMaxHeaderBytes = 16 * 1024;
constexpr size_t kMaxSmallBody = size_t{1} << 20;
constexpr int kMaxConnections = 64;
constexpr timeval kIdle = {.tv_sec = 30, .tv_usec = 0};
constexpr timeval kLinger = {.tv_sec = 0, .tv_usec = 500'000};
constexpr size_t kMaxUnread = size_t{4} << 20;

std::string policy(const std::string& nonce) {
  return fmt::format("default-src 'none'; script-src 'nonce-{}'; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; "
                     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'", nonce);
}

class BeastServer final : public Server {
 public:
  BeastServer(const ServerOptions& options, Handler handler) : options_(options), handler_(std::move(handler)), policy_(policy(options.page_nonce)) {}
  ~BeastServer() override { stop(); }

  Result<void> open() {
    TRY(listen_on(tcp::endpoint(boost::asio::ip::address_v4::loopback(), options_.port), v4_));
    port_ = v4_.local_endpoint().port();
    // The same port on ::1 or not at all: the address that is printed must be ours in both.
    if (auto six = listen_on(tcp::endpoint(boost::asio::ip::address_v6::loopback(), port_), v6_); !six) v6_ = tcp::acceptor(context_);
    return {};
  }

  uint16_t port() const override { return port_; }

  void run() override {
    std::thread six;
    if (v6_.is_open()) six = std::thread([this] { accept(v6_); });
    accept(v4_);
    if (six.joinable()) six.join();
    while (connections_.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  void stop() override {
    if (is_stopped_.exchange(true)) return;
    for (tcp::acceptor* acceptor : {&v4_, &v6_})
      if (acceptor->is_open()) ::shutdown(acceptor->native_handle(), SHUT_RDWR);
    const std::lock_guard lock(sockets_lock_);
    for (const int fd : sockets_) ::shutdown(fd, SHUT_RDWR);
  }

 private:
  Result<void> listen_on(const tcp::endpoint& endpoint, tcp::acceptor& acceptor) {
    boost::system::error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error && endpoint.address().is_v6()) acceptor.set_option(boost::asio::ip::v6_only(true), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
    if (error) return fail(fmt::format("port {} of {}: {}", endpoint.port(), endpoint.address().to_string(), error.message()));
    return {};
  }

  void accept(tcp::acceptor& acceptor) {
    while (!is_stopped_) {
      boost::system::error_code error;
      tcp::socket socket = acceptor.accept(error);
      if (error) {
        if (is_stopped_ || error == boost::asio::error::bad_descriptor || error == boost::asio::error::invalid_argument) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // out of descriptors: not at full speed
        continue;
      }
      if (connections_.load() >= kMaxConnections) continue;  // closes it
      ++connections_;
      std::thread([this, moved = std::move(socket)]() mutable {
        serve(moved);
        --connections_;
      }).detach();
    }
  }

  void serve(tcp::socket& socket) {
    const int fd = socket.native_handle();
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kIdle, sizeof kIdle);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kIdle, sizeof kIdle);
    remember(fd, true);
    beast::flat_buffer buffer;
    while (!is_stopped_ && serve_one(socket, buffer)) {
    }
    remember(fd, false);
  }

  void remember(int fd, bool is_open) {
    const std::lock_guard lock(sockets_lock_);
    if (is_open) sockets_.push_back(fd);
    else std::erase(sockets_, fd);
  }

  // False: the connection is over.
  bool serve_one(tcp::socket& socket, beast::flat_buffer& buffer) {
    http::request_parser<http::buffer_body> parser;
    parser.header_limit(kMaxHeaderBytes);
    parser.body_limit(options_.max_upload_bytes);
    boost::system::error_code error;
    http::read_header(socket, buffer, parser, error);
    if (error == http::error::body_limit) return refuse(socket, failed(413, too_large()));
    if (error == http::error::header_limit) return refuse(socket, failed(431, "the header is too large\n"));
    if (error) return false;

    Request request;
    const auto& head = parser.get();
    request.method = std::string(head.method_string());
    request.target = std::string(head.target());
    request.host = std::string(head[http::field::host]);
    request.origin = std::string(head["Origin"]);
    request.fetch_site = std::string(head["Sec-Fetch-Site"]);
    if (options_.refuse)
      if (auto refused = options_.refuse(request)) return refuse(socket, *refused);
    std::optional<TemporaryFile> upload;  // its body on disk, gone with the request
    if (auto refused = read_body(socket, buffer, parser, request, upload)) return refuse(socket, *refused);
    const bool goes_on = head.keep_alive();
    request.is_gone = [fd = socket.native_handle()] { return is_gone(fd); };
    return answer(socket, handler_(request), goes_on) && goes_on;
  }

  // What is still being sent is read for a moment: to close over unread bytes would take the answer away from its reader.
  bool refuse(tcp::socket& socket, const Answer& said) {
    if (!answer(socket, said, false)) return false;
    const int fd = socket.native_handle();
    ::shutdown(fd, SHUT_WR);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kLinger, sizeof kLinger);
    std::vector<char> chunk(64 * 1024);
    size_t read = 0;
    for (ssize_t n = 0; read < kMaxUnread && (n = recv(fd, chunk.data(), chunk.size(), 0)) > 0;) read += static_cast<size_t>(n);
    return false;
  }

  // A browser that gives up closes the connection: that is its only way to say so.
  static bool is_gone(int fd) {
    char byte = 0;
    const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  }

  std::string too_large() const { return fmt::format("more than {} bytes; cprof view FILE reads it from the disk\n", options_.max_upload_bytes); }

  std::optional<Answer> read_body(tcp::socket& socket, beast::flat_buffer& buffer, http::request_parser<http::buffer_body>& parser, Request& request,
                                  std::optional<TemporaryFile>& upload) {
    const bool is_upload = request.target.find("/api/open") != std::string::npos;
    if (is_upload) {
      auto made = TemporaryFile::create();
      if (!made) return failed(507, made.error().message + "\n");
      upload.emplace(std::move(*made));
    }
    std::vector<char> chunk(64 * 1024);
    while (!parser.is_done()) {
      parser.get().body().data = chunk.data();
      parser.get().body().size = chunk.size();
      boost::system::error_code error;
      http::read(socket, buffer, parser, error);
      if (error == http::error::body_limit) return failed(413, too_large());
      if (error && error != http::error::need_buffer) return failed(400, "the request was cut off\n");
      const size_t got = chunk.size() - parser.get().body().size;
      if (is_upload) {
        auto kept = write_fully(upload->fd(), std::as_bytes(std::span(chunk).first(got)), upload->path());
        if (!kept) return failed(507, "no room for the upload\n");
      } else {
        if (request.body.size() + got > kMaxSmallBody) return failed(413, "the request is too large\n");
        request.body.append(chunk.data(), got);
      }
    }
    if (upload) request.body_path = upload->path();
    return std::nullopt;
  }

  bool answer(tcp::socket& socket, const Answer& said, bool keep_alive) {
    const int file = said.body_file.get();
    struct stat st = {};
    const uint64_t size = file >= 0 && fstat(file, &st) == 0 ? static_cast<uint64_t>(st.st_size) : said.body.size();
    http::response<http::empty_body> head{static_cast<http::status>(said.status), 11};
    head.set(http::field::content_type, said.content_type);
    head.set(http::field::content_length, std::to_string(size));
    head.set("Content-Security-Policy", policy_);
    head.set("X-Content-Type-Options", "nosniff");
    head.set("Referrer-Policy", "no-referrer");
    head.set("Cross-Origin-Resource-Policy", "same-origin");
    head.set(http::field::cache_control, "no-store");
    if (!said.download_name.empty()) head.set(http::field::content_disposition, fmt::format("attachment; filename=\"{}\"", said.download_name));
    head.keep_alive(keep_alive);
    http::response_serializer<http::empty_body> serializer(head);
    boost::system::error_code error;
    http::write_header(socket, serializer, error);
    if (!error && file < 0) boost::asio::write(socket, boost::asio::buffer(said.body), error);
    if (!error && file >= 0) send_file(socket, file, error);
    return !error;
  }

  static void send_file(tcp::socket& socket, int file, boost::system::error_code& error) {
    std::vector<char> chunk(256 * 1024);
    for (ssize_t n = 0; !error && (n = ::read(file, chunk.data(), chunk.size())) > 0;)
      boost::asio::write(socket, boost::asio::buffer(chunk.data(), static_cast<size_t>(n)), error);
  }

  ServerOptions options_;
  Handler handler_;
  std::string policy_;
  boost::asio::io_context context_;
  tcp::acceptor v4_{context_}, v6_{context_};
  uint16_t port_ = 0;
  std::atomic<bool> is_stopped_ = false;
  std::atomic<int> connections_ = 0;
  std::mutex sockets_lock_;
  std::vector<int> sockets_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(const ServerOptions& options, Handler handler) {
  auto server = std::make_unique<BeastServer>(options, std::move(handler));
  TRY(server->open());
  return server;
}

}  // namespace cprof::serve
