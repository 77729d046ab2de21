// C++ exceptions thrown all the time, through frames with destructors: samples fall inside the unwinder's own code.
#include <stdexcept>
#include <string>

#include "work.h"

namespace {

struct Guard {
  NOINLINE ~Guard() { AFTER_CALL(); }
};

NOINLINE int throw_deep(int depth) {
  Guard guard;
  if (depth == 0) throw std::runtime_error("a message that is long enough to be allocated on the heap");
  int below = throw_deep(depth - 1);
  AFTER_CALL();
  return below + 1;
}

NOINLINE unsigned long catch_one(int depth) {
  try {
    return static_cast<unsigned long>(throw_deep(depth));
  } catch (const std::exception& error) {
    return std::string(error.what()).size();
  }
}

}  // namespace

int main(int argc, char** argv) {
  double deadline = deadline_from(argc, argv);
  volatile unsigned long sum = 0;
  for (int round = 0; now_seconds() < deadline; ++round) sum = sum + catch_one(1 + round % 12);
  return 0;
}
