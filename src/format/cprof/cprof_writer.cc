#include "format/cprof/cprof.h"

#include <unistd.h>

#include <vector>

#include "store/database.h"
#include "store/writer.h"

namespace cprof::format {
namespace {

constexpr size_t kPieceBytes = 256 * 1024;

// A page is the least that a table takes: small profiles get small files, large ones fewer levels.
const char* page_setting(const profile::Profile& profile) {
  constexpr size_t kManyRows = 50'000;
  const size_t rows = profile.samples.size() + profile.sites.size() + profile.off_cpu.size() + profile.on_cpu.size();
  return rows < kManyRows ? "PRAGMA page_size = 1024;" : "PRAGMA page_size = 4096;";
}

Result<void> write_database(const profile::Profile& profile, int fd) {
  store::Database database = TRY(store::Database::open_fd(fd, store::Database::Access::kWrite));
  TRY(database.execute(page_setting(profile)));
  TRY(database.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384; BEGIN;"));
  TRY(store::write_profile(database, profile));
  return database.execute("COMMIT;");
}

Result<void> copy(int from, OutputFile& out) {
  std::vector<std::byte> piece(kPieceBytes);
  for (off_t at = 0;;) {
    const ssize_t count = pread(from, piece.data(), piece.size(), at);
    if (count < 0) return fail_errno("temporary file");
    if (count == 0) return {};
    TRY(out.write(std::span(piece).first(static_cast<size_t>(count))));
    at += count;
  }
}

}  // namespace

Result<void> write_cprof(const profile::Profile& profile, OutputFile& out, const WriteOptions&) {
  if (out.regular_fd() >= 0) {
    if (auto written = write_database(profile, out.regular_fd()); !written)
      return std::unexpected(in_context(out.path(), written.error()));
    return {};
  }
  Fd temporary = TRY(open_temporary());
  if (auto written = write_database(profile, temporary.get()); !written)
    return std::unexpected(in_context("temporary file", written.error()));
  return copy(temporary.get(), out);
}

}  // namespace cprof::format
