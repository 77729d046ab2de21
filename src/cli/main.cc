// cprof COMMAND [OPTIONS]: finds the verb and runs it. Exceptions of libraries end here.
#include <fmt/format.h>

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "cli/option_table.h"
#include "cli/verb.h"

namespace cprof::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"record", "sample a command, processes, threads or the machine", record_main},
    {"perf", "record --backend perf", perf_main},
    {"top", "live: the hottest functions and stacks", top_main},
    {"uprobe", "calls of functions: how many, how long, from where", uprobe_main},
    {"cpustat", "live: what each thread does with its time", cpustat_main},
    {"report", "a profile as text: summary, top functions, call tree", report_main},
    {"convert", "any input format to any output format", convert_main},
    {"diff", "two profiles: what got slower and faster", diff_main},
    {"annotate", "source and instructions of a function with their shares", annotate_main},
    {"sql", "profiles as tables: SQL over any input, interactive or -q", sql_main},
    {"view", "the page: flame graph, table, timeline, source, SQL", view_main},
    {"symbolize", "give names to a recording that was made without them", symbolize_main},
    {"ctl", "drive a program that has libcprof inside", ctl_main},
    {"doctor", "what this machine allows, and how to mend what it does not", doctor_main},
};

void print_help(FILE* to) {
  fmt::print(to, "cprof {}: where the time of native programs goes\n\nusage: cprof COMMAND [OPTIONS]\n\n", CPROF_VERSION);
  for (const Verb& verb : kVerbs) fmt::print(to, "  {:<9} {}\n", verb.name, verb.summary);
  fmt::print(to, "\n'cprof COMMAND --help' lists a command's options. Start with: cprof record -- ./your-program\n");
}

// The verbs as JSON; describe_options() has the rest, verb by verb.
void print_description() {
  fmt::print("{{\"version\":\"{}\",\"commands\":[", CPROF_VERSION);
  for (const Verb& verb : kVerbs)
    fmt::print("{}\n  {{\"name\":\"{}\",\"summary\":\"{}\"}}", &verb == kVerbs ? "" : ",", verb.name, verb.summary);
  fmt::print("]}}\n");
}

int run(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    print_help(stderr);
    return kWrongUsage;
  }
  std::string name = arguments.front();
  arguments.erase(arguments.begin());
  if (name == "--help" || name == "-h" || name == "help") {
    print_help(stdout);
    return kDone;
  }
  if (name == "--version" || name == "-V") {
    fmt::print("cprof {}\n", CPROF_VERSION);
    return kDone;
  }
  if (name == kDescribeOption) {
    print_description();
    return kDone;
  }
  for (const Verb& verb : kVerbs)
    if (verb.name == name) return verb.run(std::move(arguments));
  say(fmt::format("cprof: no command '{}'; 'cprof --help' lists them", name));
  return kWrongUsage;
}

// What the caller closed must not become the number of a file of ours, which what we say would go into: it stays one that cannot be
// used, for us and for a command.
void hold_standard_descriptors() {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) return;
}

// A file that may not grow further is an error of that write, not the end of the program. As good as ignoring the signal, but a
// command that is executed does not inherit it.
void survive_file_limit() {
  struct sigaction before = {}, action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGXFSZ, nullptr, &before);
  if (before.sa_handler == SIG_DFL) sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace
}  // namespace cprof::cli

int main(int argc, char** argv) {
  cprof::cli::hold_standard_descriptors();
  cprof::cli::survive_file_limit();
  try {
    int status = cprof::cli::run(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) return cprof::cli::fail_with({fmt::format("stdout: {}", strerror(errno))});
    return status;
  } catch (const std::exception& e) {
    return cprof::cli::fail_with({fmt::format("internal error: {}", e.what())});
  }
}
