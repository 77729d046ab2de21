#include "base/text_hash.h"

#include <sys/random.h>

namespace cprof {

TextHash TextHasher::run_seed() {
  static const TextHash seed = [] {
    TextHash value;
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof value)) value = {1, 2};
    return value;
  }();
  return seed;
}

}  // namespace cprof
