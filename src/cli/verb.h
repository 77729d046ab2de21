// A verb of the command line: cprof VERB [OPTIONS]. main.cc holds the table of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"

namespace cprof::cli {

// Exit statuses of the contract; `record -- CMD` passes the command's own status on.
constexpr int kDone = 0, kFailed = 1, kWrongUsage = 2;

struct Verb {
  std::string_view name;
  std::string_view summary;
  int (*run)(std::vector<std::string> arguments);  // without the verb itself
};

int record_main(std::vector<std::string> arguments);
int perf_main(std::vector<std::string> arguments);  // record --backend perf
int convert_main(std::vector<std::string> arguments);
int diff_main(std::vector<std::string> arguments);
int annotate_main(std::vector<std::string> arguments);
int report_main(std::vector<std::string> arguments);
int sql_main(std::vector<std::string> arguments);
int view_main(std::vector<std::string> arguments);
int symbolize_main(std::vector<std::string> arguments);
int top_main(std::vector<std::string> arguments);
int uprobe_main(std::vector<std::string> arguments);
int cpustat_main(std::vector<std::string> arguments);
int ctl_main(std::vector<std::string> arguments);
int doctor_main(std::vector<std::string> arguments);

// "cprof: message" on stderr; gives kFailed.
int fail_with(const Error& error);
int wrong_usage(const Error& error);  // the same, and gives kWrongUsage
// Onto stderr. Where nobody can read it, as it is closed or full, the work goes on all the same.
void tell(std::string_view text);
void say(std::string_view text);  // a line
// A line for each kind of loss that is at least so severe.
void say_losses(const Diagnostics& diagnostics, std::string_view input, Severity least);
void say_output_losses(const std::string& path, const Diagnostics& losses);

}  // namespace cprof::cli
