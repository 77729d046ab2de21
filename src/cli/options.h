// Options that several verbs share, so that they mean the same everywhere.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyze/filters.h"
#include "analyze/groups.h"
#include "base/result.h"
#include "format/format.h"
#include "load/load.h"
#include "pipeline/pipeline.h"
#include "session/record.h"

namespace cprof::cli {

// Parses arguments; a wrong use is said on stderr and gives the exit status, so does --help.
std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments);

// Checks of options that take seconds: so many that their nanoseconds can be counted, and more than none where none would mean
// that there is no limit.
extern const CLI::Validator kSeconds, kSomeSeconds;
extern const CLI::Validator kAboveZero;

struct OutputArguments {
  std::vector<std::string> paths;
  std::string format_name;
  std::string weight = "samples", metric, by = "process", folded_style = "plain";

  void add_to(CLI::App& app, bool with_outputs);
  Result<std::vector<session::Output>> outputs() const;
  format::WriteOptions write_options() const;
};

struct NamingArguments {
  std::string demangle = "full";
  bool no_inline = false;
  std::string kallsyms;  // "": this machine's, when it is the recording's kernel
  std::string root, debuginfod;  // debuginfod: "" not asked for, "true" the environment's servers, else servers
  std::vector<std::string> debug_directories;

  void add_to(CLI::App& app);
  void add_elsewhere_to(CLI::App& app);  // for verbs that read recordings, of other machines too
  bool names_sources() const { return !root.empty() || !debuginfod.empty() || !debug_directories.empty(); }
  // What cannot be used is an error.
  Result<void> apply_to(pipeline::Options& options) const;
  // A finished profile is named again when there are places to look in.
  Result<void> apply_to(load::Options& options) const;
};

// What to leave out of a profile; docs/filters.md.
struct FilterArguments {
  std::vector<std::string> focus, ignore, hide, threads, processes, labels;
  std::string show_from, time, python = "mixed";

  void add_to(CLI::App& app);
  // A bad expression, time or label is wrong usage.
  Result<analyze::Filters> filters() const;
};

// Without what the filters leave out. Nothing left is an error.
Result<profile::Profile> apply_filters(profile::Profile profile, const analyze::Filters& filters);

// --python of all that filter, and of record.
void add_python(CLI::App& app, std::string& python);

// --granularity of views and of convert.
void add_granularity(CLI::App& app, std::string& granularity, const std::string& description);

// "10", "16K", "1M", "2G" as bytes.
Result<uint64_t> parse_bytes(const std::string& text);

}  // namespace cprof::cli
