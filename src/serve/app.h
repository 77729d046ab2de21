// What the page may ask cprof for: profiles, uploads, SQL, source, instructions, exports. docs/page-api.md. Knows nothing of
// sockets. Calls may come from many threads: only SQL on one file, and the reading of new ones, wait for each other.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "load/load.h"
#include "page/payload.h"
#include "profile/profile.h"
#include "serve/gate.h"
#include "serve/http.h"
#include "serve/recent_files.h"
#include "source/source_files.h"
#include "store/query_session.h"

namespace cprof::serve {

struct AppOptions {
  load::Options load;
  std::vector<std::string> source_roots;
  std::string nonce;   // of the page's script
  std::string recent;  // the list of files that were shown before; "": none is kept
};

class App {
 public:
  App(Gate gate, AppOptions options)
      : gate_(std::move(gate)), options_(std::move(options)), sources_(options_.source_roots), recent_(options_.recent) {}

  // Reads the file, which the page shows under this name, and remembers it.
  Result<void> open(const std::string& path, const std::string& name);

  // Whether a request is refused before its body is read.
  std::optional<Answer> refusal(const Request& request) const;
  Answer handle(const Request& request);

  const std::string& token() const { return gate_.token(); }

 private:
  struct Opened;
  using Files = std::vector<std::shared_ptr<Opened>>;
  // What SQL asks: one file, or all that are open, told apart by their scope.
  struct Tables {
    std::unique_ptr<store::QuerySession> sql;
    std::timed_mutex lock;  // one statement at a time
    size_t files = 0;
  };
  // Never changed once it is in the list, but for what SQL does inside its session.
  struct Opened {
    std::string name;
    std::shared_ptr<const profile::Profile> profile;
    std::shared_ptr<Tables> tables;
    std::string payload;                       // packed, as it travels
    std::vector<page::FunctionKey> functions;  // by the page's function number
  };
  struct Call;
  using Route = Answer (App::*)(const Call&);

  Result<size_t> open_as(const std::string& path, const std::string& name, const load::Options& options);
  Result<size_t> add(profile::Profile profile, const std::string& name);
  void remember(const std::string& path);
  static Route route_of(std::string_view method, std::string_view path);
  std::shared_ptr<Opened> file_of(const Target& target);
  std::shared_ptr<Opened> file_at(uint64_t number);
  static Result<std::shared_ptr<Tables>> make_tables(const Files& files);
  static Result<std::shared_ptr<Tables>> tables_of(const std::shared_ptr<Opened>& file);
  Result<std::shared_ptr<Tables>> tables_of_all();
  Answer page(const Call&);
  Answer files(const Call&);
  Answer profile(const Call&);
  Answer upload(const Call&);
  Answer recent(const Call&);
  Answer open_recent(const Call&);
  Answer forget_recent(const Call&);
  Answer sample(const Call&);
  Answer run_export(const Call&);
  Answer sql(const Call&);
  Answer tables(const Call&);
  Answer source(const Call&);
  Answer instructions(const Call&);

  Gate gate_;
  AppOptions options_;
  std::mutex code_lock_;  // of what reads sources and binaries
  source::SourceFiles sources_;
  std::mutex recent_lock_;
  RecentFiles recent_;
  std::mutex load_lock_;  // one file is read at a time
  std::mutex files_lock_;
  Files opened_;
  std::mutex all_lock_;
  std::shared_ptr<Tables> all_;  // made when it is asked for, anew when there are more files
};

}  // namespace cprof::serve
