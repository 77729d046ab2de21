// What the live verbs (cpustat, top) look at: the target's options, and a command whose output is held back while its
// table covers the terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "base/fd.h"
#include "base/result.h"

namespace cprof::cli {

struct TargetArguments {
  std::vector<int32_t> pids, tids;
  std::string name, cgroup, container;
  bool all = false;
  std::vector<std::string> command;

  void add_to(CLI::App& app);
  // Parses, the command with its "--" or without. A status: the run is over.
  std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments);
  // No target at all is the whole machine; two are wrong usage.
  Result<void> settle();
  // A cgroup's directory, and that of a container, which is told by its cgroup from then on.
  Result<void> find_cgroup();
  std::string text() const;  // "-p 12,13", "the whole machine", "make -j2"
};

// While it lives, what this process and commands started by it write to a terminal goes to a file; put_out() shows it.
// Nothing happens to what is no terminal.
class HeldOutput {
 public:
  static Result<HeldOutput> begin();
  // The command has its files now: ours are the terminal again.
  void release();
  void put_out();

 private:
  HeldOutput() = default;
  Fd file_, stdin_, stdout_, stderr_;
};

}  // namespace cprof::cli
