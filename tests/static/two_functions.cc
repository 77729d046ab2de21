// Burns one second of CPU, three quarters of it in `costly` and one in `cheap`, by the number of rounds.
#include <cstdint>
#include <ctime>

namespace {

volatile uint64_t sink = 0;

[[gnu::noinline]] void spin(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) sink = sink + i;
}

}  // namespace

[[gnu::noinline]] void costly() {
  spin(300'000);
  sink = sink + 1;
}

[[gnu::noinline]] void cheap() {
  spin(100'000);
  sink = sink + 2;
}

int main() {
  while (std::clock() < CLOCKS_PER_SEC) {  // CPU time: as many samples on a busy machine
    costly();
    cheap();
  }
}
