// A commit that a reader holds up is tried for 20 ms, then again at the next one: the rings hold that long. Nothing is synced to the
// disk: the file survives the death of the program, not that of the machine.
#include <fcntl.h>
#include <unistd.h>

#include <optional>

#include "format/cprof/cprof.h"
#include "store/database.h"
#include "store/writer.h"

namespace cprof::format {
namespace {

class GrowingRecording : public GrowingFile {
 public:
  explicit GrowingRecording(std::string path) : path_(std::move(path)) {}

  Result<void> commit(const profile::Profile& so_far, const Diagnostics& losses, bool is_renumbered) override {
    auto done = put(so_far, losses, is_renumbered);
    if (!done) return std::unexpected(in_context(path_, done.error()));
    return {};
  }

 private:
  Result<void> put(const profile::Profile& so_far, const Diagnostics& losses, bool is_renumbered) {
    const bool is_first = !database_;
    if (is_first) TRY(open());
    if (!database_->is_in_transaction()) TRY(database_->execute("BEGIN;"));
    if (is_first) writer_ = TRY(store::Writer::create(*database_));
    else if (is_renumbered) TRY(writer_->clear());
    TRY(writer_->append(so_far, losses));
    auto committed = database_->execute("COMMIT;");
    if (!committed && !store::is_busy(committed.error())) return committed;
    return {};
  }

  // What an earlier recording of this name left is gone then, as its output will be. The file is made here, so that no
  // link that somebody put there is followed.
  Result<void> open() {
    unlink((path_ + "-journal").c_str());
    unlink(path_.c_str());
    if (!Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644))) return fail_errno("open");
    database_ = TRY(store::Database::open_path(path_));
    return database_->execute(
        "PRAGMA page_size = 4096; PRAGMA synchronous = OFF; PRAGMA cache_spill = OFF; PRAGMA busy_timeout = 20;");
  }

  std::string path_;
  std::optional<store::Database> database_;
  std::optional<store::Writer> writer_;
};

}  // namespace

std::unique_ptr<GrowingFile> grow_cprof(std::string path) { return std::make_unique<GrowingRecording>(std::move(path)); }

}  // namespace cprof::format
