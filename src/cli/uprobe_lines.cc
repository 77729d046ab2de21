#include "cli/uprobe_lines.h"

#include <fmt/format.h>

#include <iterator>

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

}  // namespace

std::string caller_text(const uprobe::Caller& caller) {
  if (!caller.name.empty()) return caller.name;
  return caller.module.empty() ? fmt::format("{:#x}", caller.address) : fmt::format("[{}+{:#x}]", caller.module, caller.address);
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
  return out + "}\n";
}

}  // namespace cprof::cli
