#include "symbolize/debuginfod/debuginfod_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"

namespace cprof::symbolize {
namespace {

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

std::string cache_directory() {
  if (std::string path = variable("DEBUGINFOD_CACHE_PATH"); !path.empty()) return path;
  if (std::string path = variable("XDG_CACHE_HOME"); path.starts_with('/')) return path + "/debuginfod_client";
  if (std::string path = variable("HOME"); path.starts_with('/')) return path + "/.cache/debuginfod_client";
  return "";
}

bool is_build_id(std::string_view hex) {
  constexpr size_t kLeast = 4, kMost = 128;
  return hex.size() >= kLeast && hex.size() <= kMost &&
         std::ranges::all_of(hex, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

Result<DebuginfodOptions> debuginfod_options(const std::string& servers) {
  DebuginfodOptions options;
  std::string text = servers.empty() ? variable("DEBUGINFOD_URLS") : servers;
  for (size_t at = text.find_first_not_of(' '); at < text.size(); at = text.find_first_not_of(' ', at)) {
    size_t end = std::min(text.find(' ', at), text.size());
    std::string server = text.substr(at, end - at);
    while (server.ends_with('/')) server.pop_back();
    if (server.starts_with("http://") || server.starts_with("https://")) options.servers.push_back(server);
    else if (!server.starts_with("ima:"))  // elfutils' words for what it verifies
      return fail(fmt::format("debuginfod: '{}' is not an http or https address", server));
    at = end;
  }
  if (options.servers.empty())
    return fail("--debuginfod: no server; write --debuginfod=URL or set DEBUGINFOD_URLS");
  options.cache_directory = cache_directory();
  return options;
}

// One file that is looked for, and where the losses go.
struct DebuginfodClient::Request {
  DebuginfodKind kind;
  const std::string& hex;
  std::string_view module;
  Diagnostics& diagnostics;

  void note(std::string_view name, Severity severity, std::string_view what, const std::string& example) const {
    diagnostics.add(name, severity, what, 1, example);
  }
  Outcome unusable(const std::string& why) const {
    note("debuginfod_unusable", Severity::kError, "files that a debuginfod server sent could not be used", why);
    return Outcome::kFailed;
  }
};

DebuginfodClient::DebuginfodClient(DebuginfodOptions options)
    : options_(std::move(options)), cache_(options_.cache_directory) {}

std::shared_ptr<object::ElfFile> DebuginfodClient::find(DebuginfodKind kind, const std::string& hex, std::string_view module,
                                                        Diagnostics& diagnostics) {
  if (!is_build_id(hex)) return nullptr;
  auto [known, is_new] = answered_.try_emplace({hex, kind});
  if (!is_new) return known->second;
  if (auto file = cache_.find(kind, hex)) return known->second = std::move(file);
  Request request{kind, hex, module, diagnostics};
  if (cache_.is_known_absent(kind, hex)) return nullptr;
  return known->second = fetch(request);
}

std::shared_ptr<object::ElfFile> DebuginfodClient::fetch(const Request& request) {
  bool all_said_no = true;
  std::shared_ptr<object::ElfFile> file;
  for (const std::string& server : options_.servers) {
    if (given_up_.contains(server)) {
      all_said_no = false;
      continue;
    }
    Outcome outcome = ask(server, request, file);
    if (outcome == Outcome::kFound) return file;
    all_said_no &= outcome == Outcome::kAbsent;
  }
  if (!all_said_no) return nullptr;
  cache_.remember_absent(request.kind, request.hex);
  request.note("debuginfod_absent", Severity::kInfo, "files that no debuginfod server has",
               fmt::format("{} ({} {})", request.module, name_of(request.kind), request.hex));
  return nullptr;
}

DebuginfodClient::Outcome DebuginfodClient::ask(const std::string& server, const Request& request,
                                                std::shared_ptr<object::ElfFile>& file) {
  auto incoming = cache_.create(request.kind, request.hex);
  if (!incoming) return request.unusable(incoming.error().message);
  DebuginfodProgress progress{request.module, server};
  auto take = [&](std::span<const std::byte> bytes, uint64_t size) -> Result<void> {
    progress.received += bytes.size();
    progress.size = size;
    if (options_.progress) options_.progress(progress);
    return write_fully(incoming->fd(), bytes, incoming->name());
  };
  std::string url = fmt::format("{}/buildid/{}/{}", server, request.hex, name_of(request.kind));
  HttpAnswer answer = http_get(url, options_.limits, take);
  if (answer.fault != HttpFault::kNone || answer.status != 200) return without_file(server, request, answer);
  auto checked = open_checked(incoming->fd(), incoming->name(), request.hex);
  if (!checked) return request.unusable(fmt::format("{}: {}", url, checked.error().message));
  file = std::move(*checked);
  if (auto kept = incoming->keep(); !kept)
    request.note("debuginfod_not_kept", Severity::kNotice, "files that came from a debuginfod server and could not be kept",
                 kept.error().message);
  request.note("debuginfod_fetched", Severity::kInfo, "files that came from a debuginfod server", url);
  return Outcome::kFound;
}

DebuginfodClient::Outcome DebuginfodClient::without_file(const std::string& server, const Request& request,
                                                         const HttpAnswer& answer) {
  if (answer.fault == HttpFault::kNone && answer.status == 404) return Outcome::kAbsent;
  std::string why = answer.problem.empty() ? fmt::format("status {}", answer.status) : answer.problem;
  bool is_servers = answer.fault == HttpFault::kServer || answer.status >= 500;
  if (!is_servers) return request.unusable(fmt::format("{}: {}: {}", server, request.module, why));
  given_up_.insert(server);
  request.note("debuginfod_given_up", Severity::kError,
               "debuginfod servers given up for this run: names come from what is here", fmt::format("{}: {}", server, why));
  return Outcome::kFailed;
}

}  // namespace cprof::symbolize
