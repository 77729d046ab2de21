#include "format/pprof/frame_filter.h"

#include <fmt/format.h>

namespace cprof::format {
namespace {

std::optional<analyze::Pattern> compile(std::string_view pattern, std::string_view field, Diagnostics& diagnostics) {
  if (pattern.empty()) return std::nullopt;
  auto compiled = analyze::Pattern::compile(pattern);
  if (compiled) return std::move(*compiled);
  diagnostics.add("pprof_pattern_ignored", Severity::kError,
                  "drop_frames or keep_frames of a pprof file was not understood, so no frames were dropped", 1,
                  fmt::format("{}: {}", field, compiled.error().message));
  return std::nullopt;
}

}  // namespace

FrameFilter::FrameFilter(std::string_view drop, std::string_view keep, Diagnostics& diagnostics)
    : drop_(compile(drop, "drop_frames", diagnostics)), keep_(compile(keep, "keep_frames", diagnostics)) {
  if (!keep.empty() && !keep_) drop_.reset();
}

bool FrameFilter::drops(std::string_view function) {
  if (!drop_) return false;
  std::string_view name = without_arguments(function);
  return drop_->matches_all_of(name) && !(keep_ && keep_->matches_all_of(name));
}

std::string_view without_arguments(std::string_view function) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)", kCall = "operator()";
  if (function.starts_with('.')) function.remove_prefix(1);
  for (size_t at = function.find('('); at != function.npos; at = function.find('(', at + 1)) {
    bool is_name = function.substr(at).starts_with(kAnonymous) || function.substr(0, at + 2).ends_with(kCall);
    if (!is_name) return function.substr(0, at);
  }
  return function;
}

}  // namespace cprof::format
