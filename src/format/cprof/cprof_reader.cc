#include "format/cprof/cprof.h"
#include "format/cprof/recording_file.h"
#include "store/database.h"
#include "store/reader.h"

namespace cprof::format {
namespace {

Result<profile::Profile> read_database(int fd) {
  store::Database database = TRY(store::Database::open_fd(fd, store::Database::Access::kRead));
  return store::read_profile(database);
}

}  // namespace

Result<profile::Profile> read_cprof(Input input, const ReadOptions& options) {
  const std::string name = input.name;
  if (input.head.empty()) return fail(name + ": the file is empty");
  Fd fd = TRY(open_recording(std::move(input), options));
  auto profile = read_database(fd.get());
  if (!profile) return std::unexpected(in_context(name, profile.error()));
  return profile;
}

}  // namespace cprof::format
