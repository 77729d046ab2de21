// cprof sql: asks one or more profiles by SQL. The statements come from -q, from stdin, or from a person at a terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "cli/options.h"
#include "cli/sql_shell.h"
#include "cli/verb.h"
#include "load/load.h"
#include "symbolize/symbolizer.h"

namespace cprof::cli {
namespace {

constexpr size_t kMaxScript = size_t{64} << 20;

struct SqlArguments {
  std::vector<std::string> inputs, queries;
  std::string input_format, format = "table";
  store::QueryLimits limits;
  NamingArguments naming;
};

Result<std::unique_ptr<store::QuerySession>> open_session(const SqlArguments& a) {
  auto demangler = std::make_shared<symbolize::Demangler>(symbolize::DemangleStyle::kFull);
  auto session = TRY(store::QuerySession::create(
      [demangler](std::string_view name) { return std::string(demangler->demangle(name)); }));
  for (const std::string& input : a.inputs) {
    load::Options options;
    options.format_name = a.input_format;
    TRY(a.naming.apply_to(options));
    profile::Profile profile = TRY(load::load_profile(input, options));
    for (const auto& [name, entry] : profile.diagnostics.entries())
      if (entry.severity >= Severity::kError)
        say(fmt::format("cprof: {}: {} ({})", input, entry.description, entry.count));
    session->add_profile(std::move(profile), input);
  }
  return session;
}

Result<std::string> read_stdin() {
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("stdin");
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kMaxScript) return fail("stdin: more than 64 MB of SQL");
  }
}

int run_scripts(store::QuerySession& session, const SqlArguments& a, std::string_view where,
                std::span<const std::string> scripts) {
  auto output = make_sql_output(*sql_format_from(a.format), stdout, terminal_columns());
  for (const std::string& script : scripts) {
    auto done = session.run(script, a.limits, *output);
    if (done) continue;
    fflush(stdout);
    say(sql_error_text(where, script, done.error()));
    return kFailed;
  }
  return kDone;
}

int sql(const SqlArguments& a) {
  auto session = open_session(a);
  if (!session) return fail_with(session.error());
  if (!a.queries.empty()) return run_scripts(**session, a, "-q", a.queries);
  if (isatty(STDIN_FILENO)) return run_sql_shell(**session, {*sql_format_from(a.format), a.limits});
  auto script = read_stdin();
  if (!script) return fail_with(script.error());
  return run_scripts(**session, a, "stdin", {&*script, 1});
}

}  // namespace

int sql_main(std::vector<std::string> arguments) {
  SqlArguments a;
  CLI::App app("Asks profiles by SQL. Without -q: from stdin, or interactively when that is a terminal.", "cprof sql");
  app.add_option("file", a.inputs, "profiles to read, '-' is stdin; several are told apart by their scope")->required();
  app.add_option("-q,--query", a.queries, "statements to run; may be given more than once")->allow_extra_args(false);
  app.add_option("--format", a.format, "how rows are shown")->check(CLI::IsMember({"table", "csv", "json"}));
  app.add_option("--limit", a.limits.rows, "rows of each statement that are shown; 0: all");
  app.add_option("--timeout", a.limits.seconds, "seconds after which a statement is stopped; 0: none")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--input-format", a.input_format, "input format by name, over what its bytes say");
  a.naming.add_to(app);
  a.naming.add_elsewhere_to(app);
  if (auto status = parse(app, std::move(arguments))) return *status;
  if (a.queries.empty() && std::ranges::find(a.inputs, "-") != a.inputs.end()) {
    say("cprof: sql: the profile comes from stdin, so the statements must come from -q");
    return kWrongUsage;
  }
  return sql(a);
}

}  // namespace cprof::cli
