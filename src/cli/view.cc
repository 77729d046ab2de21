// cprof view: the page, served on loopback to the browser of whoever started it.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "cli/options.h"
#include "cli/verb.h"
#include "cli/weight_arguments.h"
#include "serve/app.h"
#include "serve/server.h"

namespace cprof::cli {
namespace {

struct ViewArguments {
  std::vector<std::string> inputs;
  std::string input_format;
  uint16_t port = 0;
  bool no_browser = false;
  bool no_recent = false;
  SourceArguments source;
  NamingArguments naming;
};

bool has_display() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"})
    if (const char* value = getenv(name); value && *value) return true;
  return false;
}

// In a session of its own, silent, with the signals that we block; one that cannot be started is no failure: the address is
// printed.
void open_browser(const std::string& address) {
  const char* chosen = getenv("BROWSER");
  const std::string browser = chosen && *chosen ? chosen : "xdg-open";
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  char* arguments[] = {const_cast<char*>(browser.c_str()), const_cast<char*>(address.c_str()), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, browser.c_str(), &files, &attributes, arguments, environ) == 0)
    std::thread([child] { waitpid(child, nullptr, 0); }).detach();  // no zombie while the page is served
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
}

// Ends the server on SIGINT and SIGTERM; the signals are blocked in every thread, and this one takes them.
void stop_on_signal(serve::Server& server, const sigset_t& signals) {
  std::thread([&server, signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    server.stop();
  }).detach();
}

Result<void> view(const ViewArguments& a) {
  serve::AppOptions options;
  options.load.format_name = a.input_format;
  TRY(a.naming.apply_to(options.load));
  options.source_roots = a.source.folders();
  options.nonce = serve::Gate::new_token();
  if (!a.no_recent) options.recent = serve::RecentFiles::default_list();

  std::unique_ptr<serve::App> app;
  serve::ServerOptions server_options;
  server_options.port = a.port;
  server_options.page_nonce = options.nonce;
  server_options.refuse = [&](const serve::Request& request) { return app->refusal(request); };
  auto server = TRY(serve::Server::listen(server_options, [&](const serve::Request& request) { return app->handle(request); }));
  app = std::make_unique<serve::App>(serve::Gate(serve::Gate::new_token(), server->port()), std::move(options));
  for (const std::string& input : a.inputs) TRY(app->open(input, input));

  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  stop_on_signal(*server, signals);
  const std::string address = fmt::format("http://127.0.0.1:{}/{}/", server->port(), app->token());
  fmt::print("{}\n", address);
  fflush(stdout);
  say("cprof: the page is at that address until Ctrl-C");
  if (!a.no_browser && has_display()) open_browser(address);
  server->run();
  return {};
}

}  // namespace

int view_main(std::vector<std::string> arguments) {
  ViewArguments a;
  CLI::App app("Opens the page with one or more profiles: flame graph, table, timeline, source, SQL.", "cprof view");
  app.add_option("file", a.inputs, "profiles to read; more can be dropped on the page");
  app.add_option("--input-format", a.input_format, "input format by name, over what its bytes say");
  app.add_option("--port", a.port, "port on loopback; 0: any free one")->capture_default_str();
  app.add_flag("--no-browser", a.no_browser, "only print the address");
  app.add_flag("--no-recent", a.no_recent, "neither remember these files for the page's list of recent files nor show it");
  a.source.add_to(app);
  a.naming.add_to(app);
  a.naming.add_elsewhere_to(app);
  if (auto status = parse(app, std::move(arguments))) return *status;
  auto done = view(a);
  return done ? kDone : fail_with(done.error());
}

}  // namespace cprof::cli
