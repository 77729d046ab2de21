// What the page may ask cprof for: profiles, uploads, SQL, source, instructions, exports. docs/page-api.md. Knows nothing of
// sockets; one call at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "load/load.h"
#include "page/payload.h"
#include "profile/profile.h"
#include "serve/gate.h"
#include "serve/http.h"
#include "source/source_files.h"
#include "store/query_session.h"

namespace cprof::serve {

struct AppOptions {
  load::Options load;
  std::vector<std::string> source_roots;
  std::string nonce;  // of the page's script
};

class App {
 public:
  App(Gate gate, AppOptions options) : gate_(std::move(gate)), options_(std::move(options)), sources_(options_.source_roots) {}

  // Reads the file; the page shows it under this name.
  Result<void> open(const std::string& path, const std::string& name);

  // Whether a request is refused before its body is read.
  std::optional<Answer> refusal(const Request& request) const;
  Answer handle(const Request& request);

  const std::string& token() const { return gate_.token(); }

 private:
  struct Opened {
    std::unique_ptr<store::QuerySession> sql;  // owns the profile
    const profile::Profile* profile = nullptr;
    std::string payload;                       // packed, as it travels
    std::vector<page::FunctionKey> functions;  // by the page's function number
  };
  struct Call;
  using Route = Answer (App::*)(const Call&);

  Result<void> open_as(const std::string& path, const std::string& name, const load::Options& options);
  static Route route_of(std::string_view method, std::string_view path);
  Opened* file_of(const Target& target);
  Answer page(const Call&);
  Answer files(const Call&);
  Answer profile(const Call&);
  Answer upload(const Call&);
  Answer run_export(const Call&);
  Answer sql(const Call&);
  Answer source(const Call&);
  Answer instructions(const Call&);

  Gate gate_;
  AppOptions options_;
  source::SourceFiles sources_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Opened>> opened_;
};

}  // namespace cprof::serve
