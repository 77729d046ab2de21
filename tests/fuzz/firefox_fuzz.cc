// Any bytes as firefox: what can be read must be valid and writable.
#include <cstdlib>
#include <span>

#include "format/firefox/firefox.h"
#include "format/input.h"
#include "profile/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cprof;
  const auto bytes = std::as_bytes(std::span(data, size));
  format::sniff_firefox(bytes);
  auto input = format::memory_input(bytes, "fuzz");
  if (!input) return 0;
  format::ReadOptions options;
  options.max_input_bytes = size_t{64} << 20;
  auto profile = format::read_firefox(std::move(*input), options);
  if (!profile) return 0;
  if (!profile::validate(*profile)) abort();
  auto out = OutputFile::create("/dev/null");
  if (!out || !format::write_firefox(*profile, *out, {})) abort();
  return 0;
}
