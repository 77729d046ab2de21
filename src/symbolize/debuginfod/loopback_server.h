// For tests: an HTTP server on loopback whose answers are given byte by byte, so that it can hang, drip, lie and break off.
// One thread of its own, one connection at a time.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace cprof::symbolize {

class LoopbackServer {
 public:
  // One connection, whose request has come. All of it may block: pause() ends when the server does.
  class Connection {
   public:
    Connection(const LoopbackServer& server, int fd, std::string path) : server_(server), fd_(fd), path_(std::move(path)) {}

    const std::string& path() const { return path_; }
    // False: the client is gone, or the server ends.
    bool send(std::string_view bytes) const {
      while (!bytes.empty()) {
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<size_t>(sent));
      }
      return true;
    }
    void answer(std::string_view status, std::string_view body = "", std::string_view headers = "") const {
      send("HTTP/1.1 " + std::string(status) + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + std::string(headers) + "\r\n" +
           std::string(body));
    }
    bool pause(std::chrono::milliseconds time) const {
      pollfd ended = {server_.ended_.get(), POLLIN, 0};
      return poll(&ended, 1, static_cast<int>(time.count())) == 0;
    }

   private:
    const LoopbackServer& server_;
    int fd_;
    std::string path_;
  };
  using Answer = std::function<void(const Connection&)>;

  explicit LoopbackServer(Answer answer) : answer_(std::move(answer)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), ended_(eventfd(0, EFD_CLOEXEC)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(listener_.get(), 8) == 0 &&
        getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0)
      url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~LoopbackServer() {
    eventfd_write(ended_.get(), 1);
    thread_.join();
  }

  const std::string& url() const { return url_; }
  std::vector<std::string> asked() const {
    std::scoped_lock lock(mutex_);
    return asked_;
  }

 private:
  void serve() {
    while (true) {
      pollfd waiting[] = {{listener_.get(), POLLIN, 0}, {ended_.get(), POLLIN, 0}};
      if (poll(waiting, 2, -1) < 0 || waiting[1].revents) return;
      const Fd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client) serve_one(client.get());
    }
  }

  void serve_one(int fd) {
    const timeval patience = {2, 0};
    for (int option : {SO_RCVTIMEO, SO_SNDTIMEO}) setsockopt(fd, SOL_SOCKET, option, &patience, sizeof patience);
    std::string request;
    char piece[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = recv(fd, piece, sizeof piece, 0);
      if (count <= 0) return;
      request.append(piece, static_cast<size_t>(count));
    }
    const size_t start = request.find(' ') + 1;
    std::string path = request.substr(start, request.find(' ', start) - start);
    {
      std::scoped_lock lock(mutex_);
      asked_.push_back(path);
    }
    answer_(Connection(*this, fd, std::move(path)));
  }

  Answer answer_;
  Fd listener_, ended_;
  std::string url_;
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
  std::thread thread_;
};

}  // namespace cprof::symbolize
