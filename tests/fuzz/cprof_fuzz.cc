// Any bytes as a recording, and any damage of a good one: four bytes of input change one byte of it. What can be read must
// be valid and writable.
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "format/cprof/cprof.h"
#include "format/input.h"
#include "profile/validate.h"
#include "store/database.h"
#include "store/full_profile_for_tests.h"
#include "store/writer.h"

namespace {

using namespace cprof;

std::vector<std::byte> make_recording() {
  auto file = open_temporary();
  if (!file) abort();
  auto database = store::Database::open_fd(file->get(), store::Database::Access::kWrite);
  if (!database || !database->execute("PRAGMA page_size = 1024; PRAGMA journal_mode = OFF; BEGIN;") ||
      !store::write_profile(*database, store::testing::FullProfile().builder.take()) || !database->execute("COMMIT;"))
    abort();
  auto bytes = read_all(file->get(), size_t{1} << 24, "recording");
  if (!bytes) abort();
  return std::move(*bytes);
}

void read(std::span<const std::byte> bytes) {
  auto input = format::memory_input(bytes, "fuzz");
  if (!input) return;
  format::ReadOptions options;
  options.max_input_bytes = size_t{64} << 20;
  auto profile = format::read_cprof(std::move(*input), options);
  if (!profile) {
    if (profile.error().message.find('\n') != std::string::npos) abort();
    return;
  }
  if (!profile::validate(*profile)) abort();
  auto database = store::Database::open_memory();
  if (!database || !store::write_profile(*database, *profile)) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<std::byte> good = make_recording();
  format::sniff_cprof(std::as_bytes(std::span(data, size)));
  read(std::as_bytes(std::span(data, size)));
  std::vector<std::byte> damaged = good;
  for (size_t at = 0; at + 4 <= size; at += 4) {
    const size_t offset = data[at] | size_t{data[at + 1]} << 8 | size_t{data[at + 2]} << 16;
    damaged[offset % damaged.size()] = std::byte{data[at + 3]};
  }
  read(damaged);
  return 0;
}
