#include "cli/uprobe_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/digit_groups.h"
#include "cli/text_layout.h"
#include "format/json/json_writer.h"

namespace cprof::cli {
namespace {

void append_times(std::string& out, const UprobeFacts& facts) {
  const uprobe::FunctionSums& sums = facts.sums;
  const bool has_times = facts.has_latency && sums.finished > 0;
  auto add = [&](const char* name, uint64_t value, bool is_known) {
    out += is_known ? fmt::format(",\"{}\":{}", name, value) : fmt::format(",\"{}\":null", name);
  };
  add("total_ns", sums.total_ns, facts.has_latency);
  add("min_ns", sums.least_ns, has_times);
  add("mean_ns", sums.mean_ns(), has_times);
  add("p50_ns", sums.quantile(0.50), has_times);
  add("p95_ns", sums.quantile(0.95), has_times);
  add("p99_ns", sums.quantile(0.99), has_times);
  add("max_ns", sums.most_ns, has_times);
  add("unfinished", sums.unfinished(), facts.has_latency);
  add("unwound", sums.unwound, facts.has_latency);
  add("untimed", sums.untimed, true);
  add("raw_total_ns", sums.raw_ns, facts.has_latency);
}

void append_stacks(std::string& out, std::span<const uprobe::CallStack> stacks) {
  out += ",\"stacks\":[";
  for (const uprobe::CallStack& stack : stacks) {
    out += out.back() == '[' ? "{\"frames\":[" : ",{\"frames\":[";
    for (const std::string& frame : stack.frames) {
      if (out.back() != '[') out += ',';
      format::append_json_text(out, frame);
    }
    out += fmt::format("],\"end\":\"{}\",\"calls\":{},\"total_ns\":{}}}", name_of(stack.end), stack.calls, stack.total_ns);
  }
  out += ']';
}

}  // namespace

std::string caller_text(const uprobe::Caller& caller) {
  if (!caller.name.empty()) return caller.name;
  return caller.module.empty() ? fmt::format("{:#x}", caller.address) : fmt::format("[{}+{:#x}]", caller.module, caller.address);
}

std::vector<std::string> stack_lines(const uprobe::CallStack& stack, size_t most_frames) {
  constexpr size_t kCountColumns = 12;
  std::vector<std::string> lines = {fmt::format("  {} told, {} in all, from", right_aligned(grouped(static_cast<int64_t>(stack.calls)), kCountColumns),
                                                duration_text(static_cast<double>(stack.total_ns)))};
  auto add = [&](std::string_view text) { lines.push_back(std::string(kCountColumns + 3, ' ') + std::string(text)); };
  for (size_t i = 0; i < std::min(most_frames, stack.frames.size()); i++) add(printable(stack.frames[i]));
  if (stack.frames.size() > most_frames) add(fmt::format("and {} more", stack.frames.size() - most_frames));
  if (profile::is_incomplete(stack.end) || stack.frames.empty()) add(fmt::format("[{}]", name_of(stack.end)));
  return lines;
}

std::string uprobe_json_line(const UprobeFacts& facts) {
  std::string out = "{\"function\":";
  format::append_json_text(out, facts.function);
  out += ",\"module\":";
  format::append_json_text(out, facts.module);
  out += fmt::format(",\"calls\":{}", facts.sums.calls);
  append_times(out, facts);
  if (facts.has_latency) {
    out += ",\"histogram\":[";
    for (const auto& power : facts.sums.histogram.by_powers())
      if (power.count != 0) out += fmt::format("{}[{},{}]", out.back() == '[' ? "" : ",", power.from_ns, power.count);
    out += ']';
  }
  if (facts.has_callers) {
    out += ",\"callers\":[";
    for (const uprobe::Caller& caller : facts.callers) {
      out += out.back() == '[' ? "{\"name\":" : ",{\"name\":";
      format::append_json_text(out, caller_text(caller));
      out += ",\"module\":";
      format::append_json_text(out, caller.module);
      out += fmt::format(",\"calls\":{}}}", caller.calls);
    }
    out += ']';
  }
  if (facts.has_stacks) append_stacks(out, facts.stacks);
  return out + "}\n";
}

}  // namespace cprof::cli
