// cprof from inside, for C++11 upwards: the same recordings as cprof.h, as classes. Include this or cprof.h.
#ifndef CPROF_CPROF_HPP
#define CPROF_CPROF_HPP

#include <cprof/cprof.h>

#include <string>

#if defined(__cpp_impl_coroutine)
#include <coroutine>
#endif

namespace cprof {

// A session as long as this object. Whether it started: ok(); why not: cprof_error().
class Session {
 public:
  explicit Session(const char* options) : ok_(cprof_start(options) == 0) {}
  explicit Session(const std::string& options) : Session(options.c_str()) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    if (ok_) cprof_stop();
  }
  bool ok() const { return ok_; }

 private:
  bool ok_;
};

// A scope with a name that is known at run time only.
class Scope {
 public:
  explicit Scope(const char* name) : scope_(cprof_scope_begin(name)) {}
  explicit Scope(const std::string& name) : Scope(name.c_str()) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { cprof_scope_end(scope_); }

 private:
  uint32_t scope_;
};

// What runs while this lives is the fiber's.
class FiberScope {
 public:
  explicit FiberScope(uint64_t id, const char* name = nullptr, const void* stack_low = nullptr, size_t stack_bytes = 0) {
    cprof_fiber_enter(id, name, stack_low, stack_bytes);
  }
  FiberScope(const FiberScope&) = delete;
  FiberScope& operator=(const FiberScope&) = delete;
  ~FiberScope() { cprof_fiber_leave(); }
};

#if defined(__cpp_impl_coroutine)
// co_await cprof::on_fiber(awaitable, id): while the awaited thing suspends the coroutine its track is left, and entered again
// when it goes on, in whichever thread that is. The coroutine enters the track itself when it begins.
template <typename Awaiter>
class OnFiber {
 public:
  OnFiber(Awaiter awaiter, uint64_t id, const char* name) : awaiter_(static_cast<Awaiter&&>(awaiter)), id_(id), name_(name) {}
  bool await_ready() { return awaiter_.await_ready(); }
  template <typename Promise>
  auto await_suspend(std::coroutine_handle<Promise> handle) {
    cprof_fiber_leave();
    return awaiter_.await_suspend(handle);
  }
  decltype(auto) await_resume() {
    cprof_fiber_enter(id_, name_, nullptr, 0);
    return awaiter_.await_resume();
  }

 private:
  Awaiter awaiter_;
  uint64_t id_;
  const char* name_;
};

template <typename Awaitable>
decltype(auto) awaiter_of(Awaitable&& awaitable) {
  if constexpr (requires { static_cast<Awaitable&&>(awaitable).operator co_await(); })
    return static_cast<Awaitable&&>(awaitable).operator co_await();
  else if constexpr (requires { operator co_await(static_cast<Awaitable&&>(awaitable)); })
    return operator co_await(static_cast<Awaitable&&>(awaitable));
  else
    return static_cast<Awaitable&&>(awaitable);
}

template <typename Awaitable>
OnFiber<Awaitable> on_fiber(Awaitable awaitable, uint64_t id, const char* name = nullptr) {
  return {static_cast<Awaitable&&>(awaitable), id, name};
}

// Base of a promise_type: the coroutine, which begins suspended, has a track of its own from its first resumption to its end, in
// whichever threads it runs; every co_await in it leaves the track and comes back. Whoever resumes it is on the track of
// the thread afterwards. A promise with a final_suspend of its own calls end_track() there.
//   struct promise_type : cprof::TrackedPromise { promise_type() : TrackedPromise("download") {} ... };
class TrackedPromise {
 public:
  // Without a name it is "fiber ID"; a name that another living track has gets the id behind it.
  explicit TrackedPromise(std::string name = {}) : id_(next_id()), name_(static_cast<std::string&&>(name)) {}
  TrackedPromise(const TrackedPromise&) = delete;
  TrackedPromise& operator=(const TrackedPromise&) = delete;
  ~TrackedPromise() { end_track(); }

  auto initial_suspend() {
    struct Begin : std::suspend_always {
      TrackedPromise& promise;
      explicit Begin(TrackedPromise& of) : promise(of) {}
      void await_resume() { cprof_fiber_enter(promise.id_, promise.name_.c_str(), nullptr, 0); }
    };
    return Begin(*this);
  }
  auto final_suspend() noexcept {
    end_track();
    return std::suspend_always();
  }
  template <typename Awaitable>
  auto await_transform(Awaitable&& awaitable) {
    using Awaiter = decltype(awaiter_of(static_cast<Awaitable&&>(awaitable)));
    return OnFiber<Awaiter>(awaiter_of(static_cast<Awaitable&&>(awaitable)), id_, name_.c_str());
  }
  void end_track() noexcept {
    if (id_) cprof_fiber_end(id_);
    id_ = 0;
  }

 private:
  // Above what programs take for numbers of their own.
  static uint64_t next_id() {
    static uint64_t last = uint64_t{1} << 32;
    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  }

  uint64_t id_;
  std::string name_;
};
#endif

}  // namespace cprof

#endif
