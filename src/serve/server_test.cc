#include "serve/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/fd.h"

namespace cprof::serve {
namespace {

constexpr uint64_t kLimit = 1 << 20;
constexpr size_t kChunk = 64 * 1024;

ServerOptions limited() {
  ServerOptions options;
  options.max_upload_bytes = kLimit;
  return options;
}

class Uploads : public testing::Test {
 protected:
  Uploads() : server_(std::move(*Server::listen(limited(), [this](const Request& r) { return take(r); }))) {
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Uploads() override {
    server_->stop();
    thread_.join();
  }

  Answer take(const Request& request) {
    struct stat st = {};
    taken_ = ::stat(request.body_path.c_str(), &st) == 0 ? static_cast<uint64_t>(st.st_size) : 0;
    return failed(200, "taken\n");
  }

  Fd connected() const {
    Fd fd(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(server_->port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
  }

  static bool send_all(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  // The answer to an upload of so many chunks, as far as the server lets them be sent.
  std::string upload(size_t chunks) {
    const Fd fd = connected();
    const std::string chunk = fmt::format("{:x}\r\n{}\r\n", kChunk, std::string(kChunk, 'x'));
    bool goes_on = send_all(fd.get(), "POST /t/api/open?name=x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    for (size_t i = 0; i < chunks && goes_on; ++i) goes_on = send_all(fd.get(), chunk);
    if (goes_on) send_all(fd.get(), "0\r\n\r\n");
    std::string answer(4096, '\0');
    const ssize_t n = recv(fd.get(), answer.data(), answer.size(), 0);
    answer.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return answer.substr(0, answer.find('\r'));
  }

  std::atomic<uint64_t> taken_ = 0;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST_F(Uploads, ChunksArriveAsOneFile) {
  EXPECT_EQ(upload(kLimit / kChunk), "HTTP/1.1 200 OK");
  EXPECT_EQ(taken_, kLimit);
}

TEST_F(Uploads, ManySmallChunksCountTogether) {
  EXPECT_EQ(upload(kLimit / kChunk + 1), "HTTP/1.1 413 Payload Too Large");
  EXPECT_EQ(upload(100 * kLimit / kChunk), "HTTP/1.1 413 Payload Too Large");
  EXPECT_EQ(taken_, 0u) << "nothing of them reaches the handler";
}

}  // namespace
}  // namespace cprof::serve
