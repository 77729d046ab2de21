#include "source/binary.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace cprof::source {

Result<std::shared_ptr<object::ElfFile>> open_binary(const BinaryIdentity& identity) {
  if (!identity.path.starts_with('/')) return fail(fmt::format("{}: not a file that can be opened", identity.path));
  auto file = TRY(object::ElfFile::open(identity.path));
  const std::string build_id = object::to_hex(file->build_id());
  if (!identity.build_id.empty()) {
    if (build_id == identity.build_id) return file;
    return fail(fmt::format("{}: another build than the recording's (build-id {}, not {})", identity.path,
                            build_id.empty() ? "none" : build_id, identity.build_id));
  }
  const struct stat& info = file->stat();
  const int64_t changed = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (identity.recorded_ns != 0 && changed < identity.recorded_ns) return file;
  return fail(fmt::format("{}: the recording has no build-id of it, so whether this is the file that ran is not known",
                          identity.path));
}

}  // namespace cprof::source
