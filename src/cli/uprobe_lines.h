// What uprobe found, for programs: one JSON object a function and line. The names are a promise to scripts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uprobe/call_stacks.h"
#include "uprobe/caller_names.h"
#include "uprobe/latency.h"

namespace cprof::cli {

struct UprobeFacts {
  std::string_view function, module;
  const uprobe::FunctionSums& sums;
  bool has_latency = true;                     // else times are null
  std::span<const uprobe::Caller> callers{};
  bool has_callers = false;
  std::span<const uprobe::CallStack> stacks{};
  bool has_stacks = false;
};

std::string uprobe_json_line(const UprobeFacts& facts);
// "main+0x12" or an address: who called.
std::string caller_text(const uprobe::Caller& caller);
// For people: how many calls, how long, and their stack, a frame a line, the caller first.
std::vector<std::string> stack_lines(const uprobe::CallStack& stack, size_t most_frames);

}  // namespace cprof::cli
