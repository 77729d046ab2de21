// Fibers of Boost.Context that give way to each other, on two threads. Each has a track of its own in the profile: a
// scope that is open while its fiber waits goes on when the fiber does, and samples end at the fiber's base, not in the
// scheduler.
//   c++ -O2 fibers_of_boost.cc $(pkg-config --cflags --libs cprof) -lboost_context -pthread && ./a.out && cprof view
//   fibers.pftrace
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <thread>
#include <utility>

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <cprof/cprof.hpp>

namespace {

namespace context = boost::context;

class Fiber {
 public:
  Fiber(uint64_t number, void (*work)(Fiber&))
      : number_(number),
        name_("job " + std::to_string(number)),
        stack_(context::fixedsize_stack(kStackBytes).allocate()),
        fiber_(std::allocator_arg, context::preallocated(stack_.sp, stack_.size, stack_),
               context::fixedsize_stack(kStackBytes), [this, work](context::fiber&& scheduler) {
                 scheduler_ = std::move(scheduler);
                 work(*this);
                 return std::move(scheduler_);
               }) {}
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // False: it has ended.
  bool resume() {
    if (!fiber_) return false;
    const auto* top = static_cast<const char*>(stack_.sp);
    {
      const cprof::FiberScope on_its_track(number_, name_.c_str(), top - stack_.size, stack_.size);
      fiber_ = std::move(fiber_).resume();
    }
    if (fiber_) return true;
    cprof_fiber_end(number_);
    return false;
  }
  void give_way() { scheduler_ = std::move(scheduler_).resume(); }

 private:
  static constexpr size_t kStackBytes = 64 * 1024;

  uint64_t number_;
  std::string name_;
  context::stack_context stack_;
  context::fiber fiber_, scheduler_;
};

double integrate(int steps) {
  double sum = 0;
  for (int n = 0; n < steps; n++) {
    const double x = (n + 0.5) / steps;
    sum += 4 / (1 + x * x);
  }
  return sum / steps;
}

void job(Fiber& self) {
  CPROF_SCOPE("job");
  for (int step = 0; step < 4; step++) {
    {
      CPROF_SCOPE("step");
      if (integrate(1'000'000) < 3) std::puts("no pi");
    }
    self.give_way();
  }
}

void run_fibers(uint64_t first) {
  CPROF_SCOPE("scheduler");
  std::deque<Fiber> fibers;
  for (uint64_t n = 0; n < 8; n++) fibers.emplace_back(first + n, job);
  for (bool is_any = true; is_any;) {
    is_any = false;
    for (Fiber& fiber : fibers) is_any |= fiber.resume();
  }
}

}  // namespace

int main() {
  const cprof::Session session("out=fibers.pftrace,out=fibers.folded,freq=1000");
  if (!session.ok()) {
    std::fprintf(stderr, "%s\n", cprof_error());
    return 1;
  }
  std::thread other(run_fibers, 101);
  run_fibers(1);
  other.join();
}
