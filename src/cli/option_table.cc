#include "cli/option_table.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "event/known_events.h"
#include "format/format.h"
#include "format/json/json_writer.h"

namespace cprof::cli {
namespace {

struct ValueKind {
  std::string_view option, kind;
};

// By the longest name, without its dashes: one name takes the same kind of value in every verb. The lint
// (tests/lint/completions_test.py) fails on an option with a value of no kind, and completions follow the kind. A flag that may
// have a value has its kind in brackets.
constexpr ValueKind kValueKinds[] = {
    {"after", "FILE"},                {"before", "FILE"},               {"cgroup", "CGROUP"},
    {"container", "ID"},              {"count", "N"},                   {"cpu", "CPUS"},
    {"debug-dir", "DIR"},             {"debuginfod", "[=URL]"},         {"delay", "SECONDS"},
    {"depth", "N"},                   {"duration", "SECONDS"},          {"event", "EVENT"},
    {"file", "FILE"},                 {"filter", "RE"},                 {"focus", "RE"},
    {"format", "OUTPUT-FORMAT"},      {"freq", "HZ"},                   {"func", "PATTERN"},
    {"function", "FUNCTION"},         {"hide", "RE"},                   {"ignore", "RE"},
    {"input", "FILE"},                {"input-format", "INPUT-FORMAT"}, {"interval", "SECONDS"},
    {"kallsyms", "FILE"},             {"label", "KEY=VALUE"},           {"limit", "N"},
    {"list", "RE"},                   {"max-depth", "N"},               {"max-functions", "N"},           {"max-size", "BYTES"},
    {"metric", "METRIC"},             {"min-duration", "TIME"},         {"min-percent", "PERCENT"},       {"name", "NAME"},
    {"options", "KEY=VALUE"},         {"output", "FILE"},               {"overwrite-window", "SECONDS"},
    {"peek", "RE"},                   {"pid", "PID"},                   {"port", "PORT"},
    {"process", "NAME|PID"},          {"query", "SQL"},                 {"root", "DIR"},
    {"rate-limit", "N"},              {"rotate", "N"},                  {"rows", "N"},                    {"save-raw", "FILE"},
    {"show-from", "RE"},              {"sort", "COLUMN"},               {"source-path", "DIR"},
    {"stack-size", "BYTES"},          {"thread", "NAME|TID"},           {"tid", "TID"},
    {"time", "A..B"},                 {"timeout", "SECONDS"},           {"window", "SECONDS"},
};

// Of an option "--output", of a positional "file".
std::string longest_name(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  if (!names.empty()) return names.front();
  return option.get_snames().empty() ? option.get_name(true) : option.get_snames().front();
}

bool is_flag(const CLI::Option& option) { return option.get_expected_max() == 0; }

std::string_view listed_kind(const CLI::Option& option) {
  const std::string name = longest_name(option);
  const auto* found = std::ranges::find(kValueKinds, name, &ValueKind::option);
  return found == std::end(kValueKinds) ? "" : found->kind;
}

bool has_optional_value(const CLI::Option& option) { return is_flag(option) && listed_kind(option).starts_with('['); }

// The words of a check like IsMember, which says of itself "{a,b}" ("{a->0,b->1}" of a transformer); none where any word goes.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}', open);
  if (open == type.npos || close == type.npos) return {};
  std::vector<std::string> choices{""};
  for (char c : type.substr(open + 1, close - open - 1)) {
    if (c == ',') choices.emplace_back();
    else choices.back() += c;
  }
  for (std::string& choice : choices) choice.resize(std::min(choice.size(), choice.find("->")));
  return choices;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  return fmt::format("{}", fmt::join(words, between));
}

std::string kind_of(const CLI::Option& option) {
  constexpr size_t kMostInHelp = 40;  // a longer list of choices is told by the man page and the error
  const std::string choices = joined(choices_of(option), "|");
  const std::string_view listed = listed_kind(option);
  if (!choices.empty() && (choices.size() <= kMostInHelp || listed.empty())) return choices;
  return listed.empty() ? option.get_type_name() : std::string(listed);
}

// "--rows N", and nothing of CLI11's own marks: what excludes what is said by the descriptions, and by the error.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (is_flag(*option)) return has_optional_value(*option) ? kind_of(*option) : "";
    const std::string initial = option->get_default_str();
    return fmt::format(" {}{}", kind_of(*option), initial.empty() ? "" : fmt::format(" ({})", initial));
  }
};

// The values that are always the same, whatever the machine.
std::vector<std::string> known_values(const CLI::Option& option) {
  std::vector<std::string> values = choices_of(option);
  const std::string kind = kind_of(option);
  if (!values.empty()) return values;
  for (const format::FormatInfo& format : format::all_formats())
    if ((kind == "OUTPUT-FORMAT" && format.write) || (kind == "INPUT-FORMAT" && (format.read || format.open_source)))
      values.emplace_back(format.name);
  if (kind == "EVENT")
    for (const event::KnownEvent& event : event::kKnownEvents) values.emplace_back(event.name);
  return values;
}

void append_texts(std::string& out, std::string_view key, const std::vector<std::string>& texts) {
  out += fmt::format("\"{}\":[", key);
  for (const std::string& text : texts) {
    if (&text != &texts.front()) out += ',';
    format::append_json_text(out, text);
  }
  out += ']';
}

void append_text(std::string& out, std::string_view key, std::string_view text) {
  out += fmt::format("\"{}\":", key);
  format::append_json_text(out, text);
}

std::vector<std::string> names_of(const CLI::Option& option) {
  if (option.get_positional()) return {option.get_name(true)};
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string describe(const CLI::Option& option) {
  std::string out = "{";
  append_texts(out, "names", names_of(option));
  out += ',';
  append_text(out, "value", is_flag(option) && !has_optional_value(option) ? "" : kind_of(option));
  out += ',';
  append_texts(out, "choices", is_flag(option) ? std::vector<std::string>{} : known_values(option));
  out += ',';
  append_text(out, "default", option.get_default_str());
  const bool is_many = option.get_items_expected_max() >= CLI::detail::expected_max_vector_size;
  out += fmt::format(",\"is_required\":{},\"is_many\":{},", option.get_required(), is_many);
  append_text(out, "description", option.get_description());
  return out + "}";
}

}  // namespace

bool asks_for_description(const std::vector<std::string>& arguments) {
  return arguments.size() == 1 && arguments.front() == kDescribeOption;
}

void use_help_format(CLI::App& app) { app.formatter(std::make_shared<HelpFormatter>()); }

std::string describe_options(const CLI::App& app) {
  std::string lists[2];  // options, positionals
  for (const CLI::Option* option : app.get_options()) {
    std::string& list = lists[option->get_positional()];
    list += (list.empty() ? "\n  " : ",\n  ") + describe(*option);
  }
  std::string out = "{";
  append_text(out, "command", app.get_name());
  out += ',';
  append_text(out, "description", app.get_description());
  out += ',';
  append_text(out, "footer", app.get_footer());
  out += fmt::format(",\"takes_command\":{},\n\"options\":[{}],\n\"positionals\":[{}]}}\n", app.get_prefix_command(), lists[0], lists[1]);
  return out;
}

}  // namespace cprof::cli
