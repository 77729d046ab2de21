// What the live verbs (cpustat, top, uprobe) look at: the target's options, and a command whose output is held back while its
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
  // Parses, the command with its "--" or without, and finds what is meant. No target at all is the whole machine; two are
  // wrong usage. cgroup is a directory then, also that of a container. A status: the run is over.
  std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments);
  std::string text() const;  // "-p 12,13", "-a", "make -j2"

 private:
  Result<void> settle();
  Result<void> find_cgroup();
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
