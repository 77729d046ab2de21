// The options of a verb as people and other programs see them: what kind of value each takes, for --help; and all of them
// as JSON, of which man pages, completions and the lint are made (tools/describe.py). Used by parse() for every verb.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cprof::cli {

// The word after a verb, or instead of one, that asks for the JSON. Not in --help: no person needs it.
inline constexpr std::string_view kDescribeOption = "--describe-options";
bool asks_for_description(const std::vector<std::string>& arguments);

// A --help that shows the kind of each value (PID, FILE, a|b) in place of CLI11's TEXT and INT.
void use_help_format(CLI::App& app);

// {"command", "description", "footer", "takes_command", "options": [...], "positionals": [...]}
std::string describe_options(const CLI::App& app);

}  // namespace cprof::cli
