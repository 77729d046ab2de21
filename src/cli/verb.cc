#include "cli/verb.h"

#include <fmt/format.h>

#include <cstdio>

namespace cprof::cli {

int fail_with(const Error& error) {
  say(fmt::format("cprof: {}", error.message));
  return kFailed;
}

int wrong_usage(const Error& error) {
  fail_with(error);
  return kWrongUsage;
}

std::vector<std::string> loss_texts(const Diagnostics& diagnostics, Severity least) {
  std::vector<std::string> texts;
  for (const auto& [name, entry] : diagnostics.entries()) {
    if (entry.severity < least) continue;
    std::string example = entry.example.empty() ? "" : fmt::format(", as {}", entry.example);
    texts.push_back(fmt::format("{} ({}{})", entry.description, entry.count, example));
  }
  return texts;
}

void say_losses(const Diagnostics& diagnostics, std::string_view input, Severity least) {
  for (const std::string& text : loss_texts(diagnostics, least)) say(fmt::format("cprof: {}: {}", input, text));
}

void say(std::string_view text) { fmt::print(stderr, "{}\n", text); }

}  // namespace cprof::cli
