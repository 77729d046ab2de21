// Every field of a profile as text, so that two profiles are equal when their texts are, and a test says where they differ.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <string>

#include "profile/profile.h"

namespace cprof::store::testing {

using namespace profile;

class ProfileText {
 public:
  explicit ProfileText(const Profile& profile) : p_(profile) {}

  std::string all() {
    run();
    names();
    code();
    values();
    time();
    return std::move(text_);
  }

 private:
  template <typename... Fields>
  void line(std::string_view table, const Fields&... fields) {
    text_ += table;
    (add(fields), ...);
    text_ += '\n';
  }
  template <typename Tag>
  void add(Id<Tag> id) {
    text_ += id.valid() ? fmt::format(" #{}", id.value) : " none";
  }
  void add(StringId id) { text_ += fmt::format(" {}='{}'", id.value, p_.text(id)); }
  void add(std::string_view text) { text_ += fmt::format(" '{}'", text); }
  void add(const std::string& text) { add(std::string_view(text)); }
  void add(double value) { text_ += fmt::format(" {:x}", std::bit_cast<uint64_t>(value)); }
  template <typename Number>
    requires std::is_integral_v<Number>
  void add(Number value) { text_ += fmt::format(" {}", value); }
  template <typename Number>
    requires std::is_enum_v<Number>
  void add(Number value) { text_ += fmt::format(" {}", static_cast<int>(value)); }

  void run() {
    const RunInfo& r = p_.run;
    line("run", r.tool, r.command, r.hostname, r.kernel_release, r.source, r.start_ns, r.end_ns, r.start_realtime_ns,
         r.sampling_interval_ns, r.cpus, r.has_switches, r.has_off_cpu, r.is_unfinished, r.collector_cpu_ns, r.bytes_read,
         r.period_type, r.period_unit, r.period, r.default_metric);
    for (const std::string& comment : r.comments) line("comment", comment);
    for (const auto& [name, d] : p_.diagnostics.entries()) line("stat", name, d.severity, d.count, d.description, d.example);
    for (size_t i = 0; i < p_.strings.size(); ++i) line("string", StringId(i));
  }
  void names() {
    for (const Process& r : p_.processes) line("process", r.pid, r.name, r.cgroup, r.start_ns, r.end_ns);
    for (const Thread& r : p_.threads) line("thread", r.process, r.tid, r.name, r.start_ns, r.end_ns);
    for (const Metric& r : p_.metrics) line("metric", r.name, r.unit, r.period, r.is_time);
  }
  void code() {
    for (const Mapping& r : p_.mappings)
      line("mapping", r.path, r.build_id, r.start, r.end, r.file_offset, r.load_bias, r.has_functions, r.has_filenames,
           r.has_line_numbers, r.has_inline_frames);
    for (const Function& r : p_.functions) line("function", r.name, r.system_name, r.file, r.start_line);
    for (const Line& r : p_.lines) line("line", r.function, r.line, r.column);
    for (const Location& r : p_.locations)
      line("location", r.mapping, r.address, r.file_address, r.function_start, r.first_line, r.line_count, r.kind,
           r.is_return_address, r.is_folded);
    for (const CallSite& r : p_.sites) line("site", r.parent, r.location, r.depth);
  }
  void values() {
    for (const Label& r : p_.labels) line("label", r.key, r.text, r.number, r.unit, r.is_number);
    for (const auto& [first, count] : p_.label_sets) line("labels", first, count);
    for (const Aggregate& r : p_.aggregates) line("aggregate", r.site, r.metric, r.labels, r.value, r.thread, r.end);
    for (const Sample& r : p_.samples)
      line("sample", r.time_ns, r.weight, r.thread, r.site, r.cpu, r.metric, r.labels, r.end, r.in_kernel);
  }
  void time() {
    for (const SwitchInterval& r : p_.on_cpu) line("on", r.thread, r.start_ns, r.end_ns, r.cpu, r.preempted);
    for (const OffCpuInterval& r : p_.off_cpu)
      line("off", r.thread, r.start_ns, r.end_ns, r.woken_ns, r.wait_class, r.site, r.end, r.waker, r.cpu, r.is_borrowed,
           r.is_guessed, r.is_open, r.is_uninterruptible);
    for (const Track& r : p_.tracks) line("track", r.name, r.unit, r.process, r.thread);
    for (const Slice& r : p_.slices)
      line("slice", r.thread, r.name, r.category, r.start_ns, r.duration_ns, r.depth, r.track, r.labels, r.is_open);
    for (const Mark& r : p_.marks) line("mark", r.thread, r.name, r.category, r.time_ns, r.track, r.labels);
    for (const CounterValue& r : p_.counters) line("counter", r.track, r.time_ns, r.value);
  }

  const Profile& p_;
  std::string text_;
};

inline std::string text_of(const Profile& profile) { return ProfileText(profile).all(); }

}  // namespace cprof::store::testing
