#include "serve/app.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"
#include "format/format.h"
#include "page/embedded_page.h"
#include "serve/function_code.h"
#include "serve/json_rows.h"
#include "serve/sample.h"
#include "symbolize/symbolizer.h"

namespace cprof::serve {

using nlohmann::json;

namespace {

constexpr store::QueryLimits kSqlLimits{.rows = 10'000, .seconds = 30};
constexpr std::chrono::milliseconds kBetweenLooks(50);
constexpr std::string_view kAllFiles = "all";

// Formats are written to a file, then read: the name is needed in between only.
Result<Fd> exported(const profile::Profile& profile, const format::FormatInfo& info, const format::WriteOptions& options) {
  const TemporaryFile file = TRY(TemporaryFile::create());
  OutputFile out = TRY(OutputFile::create(file.path()));
  TRY(info.write(profile, out, options));
  TRY(out.commit());
  return open_read(file.path());
}

Answer json_answer(const json& value) {
  Answer answer;
  answer.content_type = "application/json";
  // Names come from files that anybody may have written: what is not UTF-8 becomes U+FFFD.
  answer.body = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return answer;
}

// "app.cprof" + "pb.gz" -> "app.pb.gz", without anything that a header or a file system could take for more than a name.
std::string download_name(std::string_view name, std::string_view ending) {
  name.remove_prefix(std::min(name.size(), name.rfind('/') + 1));
  std::string stem(name.substr(0, name.find('.', 1)));
  for (char& c : stem)
    if (!isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  return fmt::format("{}.{}", stem.empty() ? "profile" : stem, ending);
}

bool is_gone(const Request& request) { return request.is_gone && request.is_gone(); }

// Ends the statement that runs when nobody waits for its rows any more: a page that cancels, or was closed.
class Watch {
 public:
  Watch(const Request& request, store::QuerySession& sql)
      : thread_([&request, &sql](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any never;
          std::unique_lock lock(mutex);
          while (!never.wait_for(lock, stop, kBetweenLooks, [&] { return stop.stop_requested(); }))
            if (is_gone(request)) sql.interrupt();
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace

struct App::Call {
  const Request& request;
  Target target;
  std::string rest;  // below the token
};

Result<void> App::open(const std::string& path, const std::string& name) {
  TRY(open_as(path, name, options_.load));
  remember(path);
  return {};
}

void App::remember(const std::string& path) {
  const std::lock_guard lock(recent_lock_);
  recent_.add(path);
}

Result<size_t> App::open_as(const std::string& path, const std::string& name, const load::Options& options) {
  const std::lock_guard lock(load_lock_);
  return add(TRY(load::load_profile(path, options)), name);
}

Result<size_t> App::add(profile::Profile profile, const std::string& name) {
  profile.run.source = name;
  auto opened = std::make_shared<Opened>();
  opened->name = name;
  opened->payload = TRY(page::pack_payload(page::encode_payload(profile, {}, &opened->functions)));
  opened->profile = std::make_shared<const profile::Profile>(std::move(profile));
  opened->tables = TRY(make_tables({opened}));
  const std::lock_guard lock(files_lock_);
  opened_.push_back(std::move(opened));
  return opened_.size() - 1;
}

Result<std::shared_ptr<App::Tables>> App::make_tables(const Files& files) {
  auto demangler = std::make_shared<symbolize::Demangler>(symbolize::DemangleStyle::kFull);
  auto tables = std::make_shared<Tables>();
  tables->sql = TRY(store::QuerySession::create([demangler](std::string_view text) { return std::string(demangler->demangle(text)); }));
  tables->files = files.size();
  for (const auto& file : files) tables->sql->add_profile(file->profile, file->name);
  return tables;
}

Result<std::shared_ptr<App::Tables>> App::tables_of_all() {
  Files files;
  {
    const std::lock_guard lock(files_lock_);
    files = opened_;
  }
  const std::lock_guard lock(all_lock_);
  if (!all_ || all_->files < files.size()) all_ = TRY(make_tables(files));
  return all_;
}

std::optional<Answer> App::refusal(const Request& request) const {
  auto target = parse_target(request.target);
  if (!target) return failed(400, "not an address of this server\n");
  std::string rest;
  return gate_.refusal(request, *target, rest);
}

App::Route App::route_of(std::string_view method, std::string_view path) {
  static constexpr struct {
    std::string_view method, path;
    Route route;
  } kRoutes[] = {
      {"GET", "/", &App::page},           {"GET", "/api/files", &App::files},   {"GET", "/api/profile", &App::profile},
      {"POST", "/api/open", &App::upload},  {"POST", "/api/sample", &App::sample},  {"GET", "/api/export", &App::run_export},
      {"POST", "/api/sql", &App::sql},      {"GET", "/api/tables", &App::tables},   {"GET", "/api/source", &App::source},
      {"GET", "/api/disasm", &App::instructions},
      {"GET", "/api/recent", &App::recent}, {"POST", "/api/recent", &App::open_recent}, {"POST", "/api/forget", &App::forget_recent},
  };
  for (const auto& row : kRoutes)
    if (row.method == method && row.path == path) return row.route;
  return nullptr;
}

Answer App::handle(const Request& request) {
  auto target = parse_target(request.target);
  if (!target) return failed(400, "not an address of this server\n");
  Call call{request, std::move(*target), {}};
  if (auto refused = gate_.refusal(request, call.target, call.rest)) return std::move(*refused);
  const Route route = route_of(request.method, call.rest);
  return route ? (this->*route)(call) : failed(404, "not found\n");
}

std::shared_ptr<App::Opened> App::file_of(const Target& target) {
  const auto number = target.number("f");
  return number ? file_at(*number) : nullptr;
}

std::shared_ptr<App::Opened> App::file_at(uint64_t number) {
  const std::lock_guard lock(files_lock_);
  return number < opened_.size() ? opened_[number] : nullptr;
}

Result<std::shared_ptr<App::Tables>> App::tables_of(const std::shared_ptr<Opened>& file) {
  if (!file) return fail("no such file");
  return file->tables;
}

Answer App::page(const Call&) {
  Answer answer;
  answer.content_type = "text/html; charset=utf-8";
  answer.body = page::embedded_page();
  constexpr std::string_view kScript = "<script type=\"module\"";
  if (const size_t at = answer.body.find(kScript); at != std::string::npos)
    answer.body.insert(at + kScript.size(), fmt::format(" nonce=\"{}\"", options_.nonce));
  return answer;
}

Answer App::files(const Call&) {
  json list = json::array();
  const std::lock_guard lock(files_lock_);
  for (const auto& file : opened_) list.push_back({{"name", file->name}});
  return json_answer(list);
}

Answer App::profile(const Call& call) {
  const auto file = file_of(call.target);
  if (!file) return failed(404, "no such file\n");
  Answer answer;
  answer.content_type = "application/octet-stream";
  answer.body = file->payload;
  return answer;
}

Answer App::upload(const Call& call) {
  std::string name(call.target.parameter("name"));
  if (name.empty()) name = "upload";
  load::Options options = options_.load;
  options.format_name.clear();  // that was said of the files at the start
  const auto opened = open_as(call.request.body_path, name, options);
  if (!opened) {
    // The message names the temporary file; people know theirs.
    std::string text = opened.error().message;
    for (size_t at; (at = text.find(call.request.body_path)) != std::string::npos;) text.replace(at, call.request.body_path.size(), name);
    return failed(422, text + "\n");
  }
  return json_answer({{"index", *opened}});
}

Answer App::recent(const Call&) {
  const std::lock_guard lock(recent_lock_);
  json list = json::array();
  for (const RecentFiles::Entry& entry : recent_.entries())
    list.push_back({{"path", entry.path}, {"bytes", entry.bytes}, {"changed", entry.changed_s}});
  return json_answer(list);
}

// Of the list alone: no page can name a file that this user has not shown before.
Answer App::open_recent(const Call& call) {
  const std::string path(call.target.parameter("path"));
  {
    const std::lock_guard lock(recent_lock_);
    const auto known = recent_.entries();
    if (std::ranges::find(known, path, &RecentFiles::Entry::path) == known.end()) return failed(404, "not a file that was open before\n");
  }
  load::Options options = options_.load;
  options.format_name.clear();  // that was said of the files at the start
  const auto opened = open_as(path, path, options);
  if (!opened) return failed(422, opened.error().message + "\n");
  remember(path);
  return json_answer({{"index", *opened}});
}

Answer App::forget_recent(const Call&) {
  const std::lock_guard lock(recent_lock_);
  const auto done = recent_.forget();
  return done ? json_answer(json::array()) : failed(500, done.error().message + "\n");
}

Answer App::sample(const Call&) {
  const auto opened = add(sample_profile(), "sample");
  return opened ? json_answer({{"index", *opened}}) : failed(500, opened.error().message + "\n");
}

Answer App::run_export(const Call& call) {
  const auto file = file_of(call.target);
  const std::string_view ending = call.target.parameter("format");
  const format::FormatInfo* info = format::find_by_path(fmt::format("x.{}", ending));
  if (!file || !info || !info->write) return failed(404, "no such file or format\n");
  format::WriteOptions write_options;
  write_options.with_source = call.target.parameter("source") == "1";
  write_options.source_roots = options_.source_roots;
  auto body = exported(*file->profile, *info, write_options);
  if (!body) return failed(500, body.error().message + "\n");
  Answer answer;
  answer.content_type = "application/octet-stream";
  answer.body_file = std::move(*body);
  answer.download_name = download_name(file->name, ending);
  return answer;
}

Answer App::sql(const Call& call) {
  const json asked = json::parse(call.request.body, nullptr, false);
  const bool is_whole = asked.is_object() && asked.contains("f") && asked.contains("sql") && asked["sql"].is_string();
  if (!is_whole || !(asked["f"].is_number_unsigned() || asked["f"] == kAllFiles))
    return failed(400, "needs {\"f\": NUMBER or \"all\", \"sql\": TEXT}\n");
  const auto tables = asked["f"] == kAllFiles ? tables_of_all() : tables_of(file_at(asked["f"].get<uint64_t>()));
  if (!tables) return failed(404, tables.error().message + "\n");
  while (!(*tables)->lock.try_lock_for(kBetweenLooks))
    if (is_gone(call.request)) return failed(499, "given up\n");
  const std::lock_guard lock((*tables)->lock, std::adopt_lock);
  const Watch watch(call.request, *(*tables)->sql);
  JsonRows rows;
  if (auto done = (*tables)->sql->run(asked["sql"].get<std::string>(), kSqlLimits, rows); !done)
    return failed(422, done.error().message + "\n");
  return json_answer(rows.take());
}

Answer App::tables(const Call& call) {
  const auto tables = call.target.parameter("f") == kAllFiles ? tables_of_all() : tables_of(file_of(call.target));
  if (!tables) return failed(404, tables.error().message + "\n");
  const std::lock_guard lock((*tables)->lock);
  json list = json::array();
  for (const std::string& table : (*tables)->sql->tables()) {
    json columns = json::array();
    for (const auto& [name, type] : (*tables)->sql->columns(table)) columns.push_back({name, type});
    list.push_back({{"name", table}, {"columns", std::move(columns)}});
  }
  return json_answer(list);
}

Answer App::source(const Call& call) {
  const auto file = file_of(call.target);
  const auto function = call.target.number("func");
  if (!file || !function || *function >= file->functions.size()) return failed(404, "no such function\n");
  const std::lock_guard lock(code_lock_);
  auto text = function_source(*file->profile, file->functions[*function], sources_);
  return json_answer(text ? *text : json{{"note", text.error().message}});
}

Answer App::instructions(const Call& call) {
  const auto file = file_of(call.target);
  const auto function = call.target.number("func"), metric = call.target.number("metric");
  if (!file || !function || *function >= file->functions.size()) return failed(404, "no such function\n");
  const std::lock_guard lock(code_lock_);
  auto code = function_code(*file->profile, file->functions[*function], metric.value_or(0));
  return json_answer(code ? *code : json{{"note", code.error().message}});
}

}  // namespace cprof::serve
