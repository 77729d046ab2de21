// C++20 coroutines that go from thread to thread. Each has a track of its own in the profile, by cprof::TrackedPromise:
// a scope that is open over a co_await goes on where the coroutine does.
//   c++ -std=c++20 -O2 coroutines.cc $(pkg-config --cflags --libs cprof) -pthread && ./a.out && cprof view
//   coroutines.pftrace
#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <cprof/cprof.hpp>

namespace {

// Threads that resume whatever is ready, until all is done.
class Executor {
 public:
  void post(std::coroutine_handle<> handle) {
    const std::lock_guard lock(mutex_);
    ready_.push_back(handle);
    wake_.notify_one();
  }
  void start(std::coroutine_handle<> handle) {
    {
      const std::lock_guard lock(mutex_);
      unfinished_++;
    }
    post(handle);
  }
  void end() {
    const std::lock_guard lock(mutex_);
    if (--unfinished_ == 0) wake_.notify_all();
  }
  void run() {
    while (const auto handle = next()) handle.resume();
  }

 private:
  std::coroutine_handle<> next() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return !ready_.empty() || unfinished_ == 0; });
    if (ready_.empty()) return {};
    const std::coroutine_handle<> handle = ready_.front();
    ready_.pop_front();
    return handle;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::coroutine_handle<>> ready_;
  int unfinished_ = 0;
};

// A coroutine that is gone when it ends.
struct Request {
  struct promise_type : cprof::TrackedPromise {
    promise_type(Executor& executor, int number)
        : TrackedPromise("request " + std::to_string(number)), executor_(executor) {}
    ~promise_type() { executor_.end(); }
    Request get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never final_suspend() noexcept {
      end_track();
      return {};
    }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }

   private:
    Executor& executor_;
  };

  std::coroutine_handle<promise_type> handle;
};

// To the end of the queue.
struct NextTurn {
  Executor& executor;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) const { executor.post(handle); }
  void await_resume() const {}
};

double integrate(int steps) {
  double sum = 0;
  for (int n = 0; n < steps; n++) {
    const double x = (n + 0.5) / steps;
    sum += 4 / (1 + x * x);
  }
  return sum / steps;
}

Request serve(Executor& executor, int number) {
  CPROF_SCOPE("serve");
  for (int step = 0; step < 4; step++) {
    {
      CPROF_SCOPE("step");
      if (integrate(500'000 + 1000 * number) < 3) std::puts("no pi");
    }
    co_await NextTurn{executor};
  }
}

}  // namespace

int main() {
  const cprof::Session session("out=coroutines.pftrace,out=coroutines.folded,freq=1000");
  if (!session.ok()) {
    std::fprintf(stderr, "%s\n", cprof_error());
    return 1;
  }
  Executor executor;
  for (int number = 1; number <= 16; number++) executor.start(serve(executor, number).handle);
  std::vector<std::thread> threads;
  for (int n = 0; n < 2; n++) threads.emplace_back([&executor] { executor.run(); });
  for (std::thread& thread : threads) thread.join();
}
