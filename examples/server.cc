// A small threaded server, without the network: requests come into a queue, workers answer them. The profile shows for each worker
// which request it worked on, how long the queue was, and where the CPU time went.
//   c++ -O2 server.cc $(pkg-config --cflags --libs cprof) -pthread && ./a.out && cprof view server.pftrace
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <cprof/cprof.hpp>

namespace {

struct Request {
  int number = 0;
  int size = 0;
};

class Server {
 public:
  explicit Server(int workers) {
    for (int n = 0; n < workers; n++) workers_.emplace_back([this, n] { work(n); });
  }
  ~Server() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_closing_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void accept(Request request) {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(request);
    CPROF_COUNTER("queue length", queue_.size());
    wake_.notify_one();
  }

 private:
  void work(int number) {
    CPROF_THREAD(("worker " + std::to_string(number)).c_str());
    Request request;
    while (next(request)) answer(request);
  }

  bool next(Request& request) {
    CPROF_SCOPE("wait for a request");
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait(lock, [this] { return is_closing_ || !queue_.empty(); });
    if (queue_.empty()) return false;
    request = queue_.front();
    queue_.pop_front();
    CPROF_COUNTER("queue length", queue_.size());
    return true;
  }

  static void answer(const Request& request) {
    const cprof::Scope scope("request of size " + std::to_string(request.size));
    const std::vector<int> parsed = parse(request);
    respond(parsed);
  }

  static std::vector<int> parse(const Request& request) {
    CPROF_FUNCTION();
    std::vector<int> numbers(static_cast<size_t>(request.size) * 20'000);
    unsigned value = static_cast<unsigned>(request.number);
    for (int& number : numbers) number = static_cast<int>(value = value * 1664525u + 1013904223u);
    return numbers;
  }

  static void respond(std::vector<int> numbers) {
    CPROF_FUNCTION();
    long sum = 0;
    for (size_t n = 1; n < numbers.size(); n++) sum += numbers[n] ^ numbers[n - 1];
    if (sum == 42) CPROF_MARK("an unlikely sum");
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Request> queue_;
  bool is_closing_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace

int main() {
  const cprof::Session session("out=server.pftrace,out=server.folded,freq=1000");
  if (!session.ok()) {
    std::fprintf(stderr, "%s\n", cprof_error());
    return 1;
  }
  Server server(4);
  for (int n = 0; n < 400; n++) {
    server.accept({n, n % 7 + 1});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}
