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

void say_losses(const Diagnostics& diagnostics, std::string_view input, Severity least) {
  for (const auto& [name, entry] : diagnostics.entries()) {
    if (entry.severity < least) continue;
    std::string example = entry.example.empty() ? "" : fmt::format(", as {}", entry.example);
    say(fmt::format("cprof: {}: {} ({}{})", input, entry.description, entry.count, example));
  }
}

void say_output_losses(const std::string& path, const Diagnostics& losses) {
  say_losses(losses, path == "-" ? "stdout" : path, Severity::kNotice);
}

void tell(std::string_view text) { fwrite(text.data(), 1, text.size(), stderr); }

void say(std::string_view text) { tell(fmt::format("{}\n", text)); }

}  // namespace cprof::cli
