// Asks debuginfod servers for debug files and programs by build-id, and keeps them where elfutils' client keeps them, so
// that both profit: ~/.cache/debuginfod_client/BUILDID/{debuginfo,executable}. Called by the pipeline, for modules that have
// samples and lack debug info, and only when the user asked for it. What comes is checked to have the asked build-id. A
// server that does not answer is given up for the rest of the run. One thread; prints nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "object/elf_file.h"
#include "symbolize/debuginfod/debuginfod_cache.h"
#include "symbolize/debuginfod/http_get.h"

namespace cprof::symbolize {

struct DebuginfodProgress {
  std::string_view module;   // whose file it is
  std::string_view server;
  uint64_t received = 0, size = 0;  // size 0: unknown
};

struct DebuginfodOptions {
  std::vector<std::string> servers;  // http://host[:port][/path]
  std::string cache_directory;       // "": nothing is kept
  HttpLimits limits;
  std::function<void(const DebuginfodProgress&)> progress;  // may be empty
};

// servers: separated by spaces; empty: those of DEBUGINFOD_URLS, and an Error when there are none. The cache is that of
// DEBUGINFOD_CACHE_PATH, XDG_CACHE_HOME or HOME.
Result<DebuginfodOptions> debuginfod_options(const std::string& servers);

class DebuginfodClient {
 public:
  explicit DebuginfodClient(DebuginfodOptions options);

  // hex: lower case. module: for messages. nullptr: none, and why is counted.
  std::shared_ptr<object::ElfFile> find(DebuginfodKind kind, const std::string& hex, std::string_view module,
                                        Diagnostics& diagnostics);

 private:
  struct Request;
  enum class Outcome : uint8_t { kFound, kAbsent, kFailed };

  std::shared_ptr<object::ElfFile> fetch(const Request& request);
  Outcome ask(const std::string& server, const Request& request, std::shared_ptr<object::ElfFile>& file);
  Outcome without_file(const std::string& server, const Request& request, const HttpAnswer& answer);

  DebuginfodOptions options_;
  DebuginfodCache cache_;
  std::set<std::string> given_up_;
  std::map<std::pair<std::string, DebuginfodKind>, std::shared_ptr<object::ElfFile>> answered_;  // in this run
};

}  // namespace cprof::symbolize
