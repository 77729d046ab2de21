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
// co_await cprof::on_fiber(handle's awaitable, id): while the awaited thing suspends the coroutine its track is left, and
// entered again when it goes on, in whichever thread that is. The coroutine enters the track itself when it begins.
template <typename Awaitable>
class OnFiber {
 public:
  OnFiber(Awaitable awaitable, uint64_t id, const char* name) : awaitable_(static_cast<Awaitable&&>(awaitable)), id_(id), name_(name) {}
  bool await_ready() { return awaitable_.await_ready(); }
  template <typename Promise>
  auto await_suspend(std::coroutine_handle<Promise> handle) {
    cprof_fiber_leave();
    return awaitable_.await_suspend(handle);
  }
  decltype(auto) await_resume() {
    cprof_fiber_enter(id_, name_, nullptr, 0);
    return awaitable_.await_resume();
  }

 private:
  Awaitable awaitable_;
  uint64_t id_;
  const char* name_;
};

template <typename Awaitable>
OnFiber<Awaitable> on_fiber(Awaitable awaitable, uint64_t id, const char* name = nullptr) {
  return {static_cast<Awaitable&&>(awaitable), id, name};
}
#endif

}  // namespace cprof

#endif
