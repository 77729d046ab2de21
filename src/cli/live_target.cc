#include "cli/live_target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "object/cgroups.h"

namespace cprof::cli {

void TargetArguments::add_to(CLI::App& app) {
  app.add_option("-p,--pid", pids, "processes, with all their threads")->delimiter(',')->allow_extra_args(false);
  app.add_option("-t,--tid", tids, "threads")->delimiter(',')->allow_extra_args(false);
  app.add_option("-n,--name", name, "every running process of this name");
  app.add_flag("-a,--all-cpus", all, "the whole machine; so it is when no target is given");
  app.add_option("--cgroup", cgroup, "every process in this cgroup: a directory, or a path as /proc/PID/cgroup has it");
  app.add_option("--container", container, "every process in this container, by its id or name");
  app.prefix_command();
  app.footer("[--] CMD ARGS runs a command; its exit status is passed on.");
}

std::optional<int> TargetArguments::parse(CLI::App& app, std::vector<std::string> arguments) {
  const auto dashes = std::ranges::find(arguments, "--");
  if (dashes != arguments.end()) {
    command.assign(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
  }
  if (auto status = cli::parse(app, std::move(arguments))) return status;
  std::vector<std::string> rest = app.remaining();
  if (!rest.empty() && (rest[0].starts_with("-") || !command.empty())) {
    say(fmt::format("cprof: no option '{}' (see '{} --help')", rest[0], app.get_name()));
    return kWrongUsage;
  }
  if (!rest.empty()) command = std::move(rest);
  if (auto settled = settle(); !settled) return wrong_usage(settled.error());
  if (auto found = find_cgroup(); !found) return fail_with(found.error());
  return std::nullopt;
}

Result<void> TargetArguments::settle() {
  const int given = !command.empty() + !pids.empty() + !tids.empty() + !name.empty() + all + !cgroup.empty() + !container.empty();
  if (given > 1) return fail("give at most one target: a command, -p PID, -t TID, -n NAME, -a, --cgroup PATH or --container ID");
  if (given == 0) all = true;
  return {};
}

Result<void> TargetArguments::find_cgroup() {
  if (!cgroup.empty()) cgroup = TRY(object::find_cgroup(cgroup, object::cgroup_roots()));
  if (!container.empty()) cgroup = TRY(object::find_container(container, object::cgroup_roots()));
  return {};
}

std::string TargetArguments::text() const {
  if (!command.empty()) return fmt::format("{}", fmt::join(command, " "));
  if (!pids.empty()) return fmt::format("-p {}", fmt::join(pids, ","));
  if (!tids.empty()) return fmt::format("-t {}", fmt::join(tids, ","));
  if (!name.empty()) return "-n " + name;
  if (!container.empty()) return "--container " + container;
  return cgroup.empty() ? "-a" : "--cgroup " + cgroup;
}

Result<HeldOutput> HeldOutput::begin() {
  HeldOutput held;
  held.file_ = TRY(open_temporary());
  fcntl(held.file_.get(), F_SETFL, O_APPEND);  // stdout and stderr write to it by turns
  auto divert = [&](int fd, Fd& kept, int to) {
    if (!isatty(fd)) return;
    kept = Fd(fcntl(fd, F_DUPFD_CLOEXEC, 3));
    dup2(to, fd);
  };
  Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  divert(STDIN_FILENO, held.stdin_, nothing.get());
  divert(STDOUT_FILENO, held.stdout_, held.file_.get());
  divert(STDERR_FILENO, held.stderr_, held.file_.get());
  return held;
}

void HeldOutput::release() {
  auto give_back = [](int fd, Fd& kept) {
    if (kept) dup2(kept.get(), fd);
    kept.reset();
  };
  give_back(STDIN_FILENO, stdin_);
  give_back(STDOUT_FILENO, stdout_);
  give_back(STDERR_FILENO, stderr_);
}

void HeldOutput::put_out() {
  std::vector<std::byte> buffer(64 * 1024);
  off_t at = 0;
  for (;;) {
    const ssize_t count = pread(file_.get(), buffer.data(), buffer.size(), at);
    if (count <= 0) return;
    if (!write_fully(STDOUT_FILENO, std::span(buffer).first(static_cast<size_t>(count)), "stdout")) return;
    at += count;
  }
}

}  // namespace cprof::cli
