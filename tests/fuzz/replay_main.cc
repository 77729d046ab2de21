// Runs a fuzz target without libFuzzer: over nothing, over tiny inputs, over each seed file, and over a fixed set of
// damages of each seed (cut short, bytes changed, a piece repeated). The same inputs every time, in seconds, so that any
// build and any compiler can run it as a unit test. The first argument is the folder of seeds; it may be missing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kCuts = 48;
constexpr size_t kMutants = 150;
constexpr size_t kMutatedSeedBytes = 256 * 1024;  // larger seeds are replayed as they are

size_t inputs_run = 0;

// Each input gets its own allocation of exactly its size, so that the sanitizer sees a read of one byte too many.
void run(const Bytes& input) {
  Bytes exact(input);
  exact.shrink_to_fit();
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  ++inputs_run;
}

// Numbers that are the same in every run (xorshift64).
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  size_t below(size_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return bound == 0 ? 0 : state_ % bound;
  }

 private:
  uint64_t state_;
};

void damage_once(Bytes& bytes, Numbers& numbers) {
  static constexpr uint8_t kTelling[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '\n', ';', '"'};
  const size_t at = numbers.below(bytes.size());
  switch (numbers.below(4)) {
    case 0:
      bytes[at] = kTelling[numbers.below(std::size(kTelling))];
      break;
    case 1:
      bytes[at] ^= static_cast<uint8_t>(1u << numbers.below(8));
      break;
    case 2:
      bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    default: {
      const size_t length = std::min<size_t>(bytes.size() - at, 1 + numbers.below(32));
      const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                        bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
    }
  }
}

void replay_damaged(const Bytes& seed) {
  for (size_t i = 0; i < kCuts; ++i) {
    run(Bytes(seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(seed.size() * i / kCuts)));
  }
  Numbers numbers(0x9e3779b97f4a7c15u ^ seed.size());
  for (size_t i = 0; i < kMutants; ++i) {
    Bytes bytes = seed;
    const size_t damages = 1 + numbers.below(6);
    for (size_t k = 0; k < damages && !bytes.empty(); ++k) damage_once(bytes, numbers);
    run(bytes);
  }
}

bool replay_file(const std::filesystem::path& path) {
  // Said before the run: after a crash the last line names the seed.
  fprintf(stderr, "seed %s\n", path.filename().c_str());
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    fprintf(stderr, "cannot read %s\n", path.c_str());
    return false;
  }
  const Bytes seed{std::istreambuf_iterator<char>(file), {}};
  run(seed);
  if (!seed.empty() && seed.size() <= kMutatedSeedBytes) replay_damaged(seed);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  run({});
  for (int byte = 0; byte < 256; ++byte) run({static_cast<uint8_t>(byte)});
  run(Bytes(4096, 0x00));
  run(Bytes(4096, 0xff));

  std::vector<std::filesystem::path> seeds;
  if (argc > 1 && std::filesystem::is_directory(argv[1])) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
      if (entry.is_regular_file()) seeds.push_back(entry.path());
    }
  }
  std::sort(seeds.begin(), seeds.end());
  bool all_read = true;
  for (const auto& seed : seeds) all_read = replay_file(seed) && all_read;
  printf("%zu inputs\n", inputs_run);
  return all_read ? 0 : 1;
}
