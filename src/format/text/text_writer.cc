#include <fmt/format.h>

#include <algorithm>

#include "analyze/weights.h"
#include "format/frame_text.h"
#include "format/text/text.h"
#include "format/values.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

using profile::Location;
using profile::LocationId;
using profile::Profile;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr std::string_view kUnknownModule = "[unknown]";

class TextWriter {
 public:
  TextWriter(const Profile& profile, OutputFile& out)
      : profile_(profile), out_(out), is_unnamed_(std::ranges::all_of(profile.locations, [](const Location& l) { return l.line_count == 0; })) {}

  Result<void> write_sample(const profile::Sample& sample) {
    begin(sample.thread, sample.cpu, sample.time_ns, sample.weight, sample.metric);
    return finish(sample.site);
  }

  // A wait is a sample at the moment when the thread left its CPU, whose period is how long it was away.
  Result<void> write_off_cpu(const profile::OffCpuInterval& off, profile::MetricId metric) {
    begin(off.thread, off.cpu, off.start_ns, profile::off_cpu_value(off), metric);
    return finish(off.site);
  }

  // A stack of an import that has no times: its value stands where a sample's period does, at time 0.
  Result<void> write_aggregate(const profile::Aggregate& row) {
    begin(row.thread, 0, 0, row.value, row.metric);
    return finish(row.site);
  }

 private:
  void begin(profile::ThreadId id, uint32_t cpu, uint64_t time_ns, int64_t weight, profile::MetricId metric) {
    text_.clear();
    int32_t pid = 0, tid = 0;
    std::string_view comm;
    if (id.valid()) {
      const profile::Thread& thread = profile_.threads[id.index()];
      tid = pid = thread.tid;
      comm = profile_.text(thread.name);
      if (thread.process.valid()) {
        const profile::Process& process = profile_.processes[thread.process.index()];
        pid = process.pid;
        if (comm.empty()) comm = profile_.text(process.name);
      }
    }
    append_clean(text_, comm.empty() ? profile::kUnknownFrame : comm, false);
    fmt::format_to(std::back_inserter(text_), " {}/{} [{:03}] {}.{:06}: {:>10} ", pid, tid, cpu, time_ns / kSecond,
                   time_ns % kSecond / 1000, weight);
    append_clean(text_, metric.valid() ? profile_.text(profile_.metrics[metric.index()].name) : "samples", false);
    text_ += ": \n";
  }

  Result<void> finish(profile::CallSiteId site) {
    if (!site.valid())
      fmt::format_to(std::back_inserter(text_), "\t{:16x} {} ({})\n", 0, profile::kUnknownFrame, kUnknownModule);
    for (; site.valid(); site = profile_.sites[site.index()].parent)
      append_location(profile_.sites[site.index()].location);
    text_ += '\n';
    return out_.write(text_);
  }

  // Innermost line first; only the last, the real function, has an offset and a module.
  void append_location(LocationId id) {
    const Location& location = profile_.locations[id.index()];
    auto lines = profile_.lines_of(id);
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      append_name(location, &lines[i]);
      text_ += " (inlined)\n";
    }
    append_name(location, lines.empty() ? nullptr : &lines.back());
    if (!lines.empty() && location.function_start && location.file_address >= location.function_start)
      fmt::format_to(std::back_inserter(text_), "+0x{:x}", location.file_address - location.function_start);
    text_ += " (";
    std::string_view path;
    if (location.mapping.valid()) path = profile_.text(profile_.mappings[location.mapping.index()].path);
    append_clean(text_, path.empty() ? module_of_kind(location.kind) : path, false);
    if (is_unnamed_) append_offset(location);
    text_ += ")\n";
  }

  // A recording without any names: where in its file the code lies, as perf script does with -F +dsoff.
  void append_offset(const Location& location) {
    if (!location.mapping.valid()) return;
    const profile::Mapping& mapping = profile_.mappings[location.mapping.index()];
    const std::string_view path = profile_.text(mapping.path);
    bool is_inside = (path.starts_with('/') || path == "[vdso]") && location.address >= mapping.start && location.address < mapping.end;
    if (is_inside) fmt::format_to(std::back_inserter(text_), "+0x{:x}", location.address - mapping.start + mapping.file_offset);
  }

  void append_name(const Location& location, const profile::Line* line) {
    fmt::format_to(std::back_inserter(text_), "\t{:16x} ", location.address);
    std::string_view name;
    if (line && line->function.valid()) name = profile_.text(profile_.functions[line->function.index()].name);
    append_clean(text_, name.empty() || is_name_of_module(location, name) ? profile::kUnknownFrame : name, false);
  }

  // "[libc.so.6]" is what our reader makes of "[unknown] (/usr/lib/libc.so.6)".
  bool is_name_of_module(const Location& location, std::string_view name) const {
    if (!location.mapping.valid() || !name.starts_with('[') || !name.ends_with(']')) return false;
    std::string_view base = profile::base_name(profile_.text(profile_.mappings[location.mapping.index()].path));
    return name == base || name.substr(1, name.size() - 2) == base;
  }

  static std::string_view module_of_kind(profile::FrameKind kind) {
    if (kind == profile::FrameKind::kKernel) return "[kernel.kallsyms]";
    return kind == profile::FrameKind::kJit ? "[JIT]" : kUnknownModule;
  }

  const Profile& profile_;
  OutputFile& out_;
  bool is_unnamed_;
  std::string text_;
};

// Samples and waits together, by time.
Result<void> write_timed(const Profile& profile, profile::MetricId metric, TextWriter& writer) {
  const profile::MetricId off_metric = analyze::find_metric(profile, profile::kOffCpuMetric);
  std::vector<const profile::OffCpuInterval*> waits;
  if (counts_off_cpu(profile, off_metric) && (!metric.valid() || metric == off_metric))
    for (const profile::OffCpuInterval& off : profile.off_cpu) waits.push_back(&off);
  std::ranges::stable_sort(waits, {}, &profile::OffCpuInterval::start_ns);
  auto wait = waits.begin();
  for (const profile::Sample& sample : profile.samples) {
    if (metric.valid() && sample.metric != metric) continue;
    for (; wait != waits.end() && (*wait)->start_ns < sample.time_ns; ++wait)
      TRY(writer.write_off_cpu(**wait, off_metric));
    TRY(writer.write_sample(sample));
  }
  for (; wait != waits.end(); ++wait) TRY(writer.write_off_cpu(**wait, off_metric));
  return {};
}

}  // namespace

Result<void> write_text(const Profile& profile, OutputFile& out, const WriteOptions& options) {
  TextWriter writer(profile, out);
  profile::MetricId metric;
  if (!options.metric.empty() || !profile.timed()) metric = TRY(choose_value(profile, options)).metric;
  if (profile.timed()) return write_timed(profile, metric, writer);
  for (const profile::Aggregate& row : profile.aggregates)
    if (row.metric == metric) TRY(writer.write_aggregate(row));
  return {};
}

}  // namespace cprof::format
