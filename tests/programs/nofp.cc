// Everything ordinary that code without frame pointers does: recursion, virtual calls, std::function, a callback from
// qsort, libm, alloca, in two threads. Built by both compilers, three linkers, static and static-pie.
#include <alloca.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "work.h"

namespace {

NOINLINE unsigned recurse(unsigned depth) {
  if (depth == 0) {
    BURN(2000);
    return 1;
  }
  unsigned below = recurse(depth - 1);
  AFTER_CALL();
  return below + depth;
}

struct Shape {
  virtual ~Shape() = default;
  virtual double area(double scale) const = 0;
};
struct Circle : Shape {
  NOINLINE double area(double scale) const override {
    BURN(1000);
    return 3.14 * scale;
  }
};
struct Square : Shape {
  NOINLINE double area(double scale) const override {
    double sum = 0;
    for (int i = 0; i < 40; ++i) sum += std::sin(scale + i) * std::pow(scale, 1.1 + i);
    return sum;
  }
};

NOINLINE double virtual_calls(const Shape* const* shapes, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += shapes[i & 1]->area(1.0 + i);
  return sum;
}

NOINLINE int compare_ints(const void* a, const void* b) {
  int x = *static_cast<const int*>(a), y = *static_cast<const int*>(b);
  return x < y ? -1 : x > y;
}

NOINLINE int sort_something(unsigned seed) {
  int values[512];
  for (int& value : values) value = static_cast<int>(seed = seed * 1664525u + 1013904223u) >> 1;
  qsort(values, 512, sizeof(int), compare_ints);
  return values[0];
}

NOINLINE unsigned with_alloca(unsigned bytes) {
  char* buffer = static_cast<char*>(alloca(bytes));
  std::memset(buffer, static_cast<int>(bytes), bytes);
  BURN(1000);
  __asm__ volatile("" ::"r"(buffer) : "memory");
  return static_cast<unsigned char>(buffer[bytes / 2]);
}

NOINLINE void call_function(const std::function<unsigned(unsigned)>& function, unsigned argument) {
  volatile unsigned sink = function(argument);
  (void)sink;
}

NOINLINE void one_round(unsigned round) {
  static const Circle circle;
  static const Square square;
  const Shape* shapes[2] = {&circle, &square};
  volatile double sink = virtual_calls(shapes, 4);
  (void)sink;
  call_function([](unsigned n) { return recurse(n); }, 10 + round % 20);
  call_function(with_alloca, 100 + round % 3000);
  volatile int smallest = sort_something(round);
  (void)smallest;
}

NOINLINE void run_until(double deadline) {
  for (unsigned round = 0; now_seconds() < deadline; ++round) one_round(round);
  AFTER_CALL();
}

}  // namespace

int main(int argc, char** argv) {
  double deadline = deadline_from(argc, argv);
  std::thread second(run_until, deadline);
  run_until(deadline);
  second.join();
  return 0;
}
