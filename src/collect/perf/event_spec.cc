#include "collect/perf/event_spec.h"

#include <linux/perf_event.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/file.h"
#include "event/known_events.h"

namespace cprof::collect {
namespace {

constexpr size_t kMostInGroup = 16;

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

bool parse_raw(std::string_view name, uint64_t& config) {
  if (name.size() < 2 || name.size() > 17 || name[0] != 'r') return false;
  const char* end = name.data() + name.size();
  auto [stop, error] = std::from_chars(name.data() + 1, end, config, 16);
  return error == std::errc() && stop == end;
}

Result<EventSpec> parse_tracepoint(std::string_view system, std::string_view event,
                                   const std::vector<std::string>& tracefs) {
  std::string name = std::string(system) + ":" + std::string(event);
  if (!is_name(system) || !is_name(event)) return fail("not an event name: \"" + name + "\"");
  Error last;
  for (const std::string& root : tracefs) {
    auto text = read_text_file(root + "/events/" + std::string(system) + "/" + std::string(event) + "/id", 64);
    if (!text) {
      if (last.message.empty()) last = text.error();
      continue;
    }
    EventSpec spec{.metric = {.name = name, .unit = "count", .type = PERF_TYPE_TRACEPOINT}, .every = true};
    auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), spec.metric.config);
    if (error != std::errc()) return fail(root + ": the id of " + name + " is not a number");
    return spec;
  }
  return fail("no tracepoint " + name + " (" + last.message +
                  "); needs root and tracefs: mount -t tracefs tracefs /sys/kernel/tracing",
              last.code);
}

// "field:pid_t pid;	offset:24;	size:4;	signed:1;": the offset of the 4-byte field of this name, as the kernel
// describes it in events/*/*/format.
std::optional<uint16_t> field_offset(std::string_view format, std::string_view field) {
  const size_t at = format.find(std::string(" ") + std::string(field) + ";");
  if (at == format.npos) return std::nullopt;
  std::string_view line = format.substr(at);
  line = line.substr(0, line.find('\n'));
  constexpr std::string_view kOffset = "offset:";
  const size_t offset = line.find(kOffset);
  if (offset == line.npos || line.find("size:4;") == line.npos) return std::nullopt;
  uint16_t value = 0;
  const char* begin = line.data() + offset + kOffset.size();
  auto [end, error] = std::from_chars(begin, line.data() + line.size(), value);
  if (error != std::errc() || value == 0) return std::nullopt;
  return value;
}

// The kernel's inode number of the first pid namespace (PROC_PID_INIT_INO).
constexpr std::string_view kInitialPidNamespace = "pid:[4026531836]";

}  // namespace

EventSpec switch_stacks_spec() {
  EventSpec spec = *parse_event("context-switches", {});
  spec.metric.period = 1;
  spec.metric.is_switch_stacks = true;
  return spec;
}

// sched_waking fires where the waker runs; sched_wakeup, of kernels before 4.3 too, may fire on the woken's CPU.
Result<EventSpec> find_wakeup_spec(const std::vector<std::string>& tracefs, const std::string& pid_namespace_path) {
  char link[64] = {};
  const ssize_t length = readlink(pid_namespace_path.c_str(), link, sizeof(link));
  if (length < 0 || std::string_view(link, static_cast<size_t>(length)) != kInitialPidNamespace)
    return fail("cprof runs in a pid namespace, and the tracepoint names threads by other numbers");
  Error last;
  for (std::string_view event : {"sched_waking", "sched_wakeup"}) {
    auto spec = parse_tracepoint("sched", event, tracefs);
    if (!spec) {
      last = spec.error();
      continue;
    }
    spec->metric.period = 1;
    for (const std::string& root : tracefs) {
      auto format = read_text_file(root + "/events/sched/" + std::string(event) + "/format", 64 * 1024);
      if (!format) continue;
      auto offset = field_offset(*format, "pid");
      if (!offset) return fail(root + ": the format of sched:" + std::string(event) + " has no field pid of 4 bytes");
      spec->woken_tid_offset = *offset;
      return spec;
    }
  }
  return std::unexpected(last);
}

EventSpec cpu_clock_spec() { return *parse_event("cpu-clock", {}); }

namespace {

// The letters behind the last colon, where they are what perf calls modifiers; a tracepoint's name follows its system.
std::string_view modifiers_of(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return {};
  const std::string_view letters = text.substr(colon + 1);
  const bool are_letters = !letters.empty() && letters.find_first_not_of("ukhGHIpPSDWeb") == letters.npos;
  return are_letters ? letters : std::string_view{};
}

// ":u", ":k", and both, which is what there is without them.
Result<std::string_view> take_modifiers(std::string_view text, EventSpec& spec) {
  const std::string_view letters = modifiers_of(text);
  if (letters.empty()) return text;
  if (letters.find_first_not_of("uk") != letters.npos)
    return fail("-e " + std::string(text) + ": not supported: modifiers but :u and :k");
  spec.only_user = !letters.contains('k');
  spec.only_kernel = !letters.contains('u');
  return text.substr(0, text.size() - letters.size() - 1);
}

}  // namespace

Result<EventSpec> parse_event(std::string_view text, const std::vector<std::string>& tracefs) {
  EventSpec spec;
  std::string_view name = TRY(take_modifiers(text, spec));
  bool user = spec.only_user, kernel = spec.only_kernel;
  if (size_t colon = name.find(':'); colon != name.npos) {
    spec = TRY(parse_tracepoint(name.substr(0, colon), name.substr(colon + 1), tracefs));
  } else {
    auto row = std::ranges::find_if(event::kKnownEvents, [&](const event::KnownEvent& e) { return name == e.name || name == e.alias; });
    spec.metric.unit = "count";
    if (row != std::end(event::kKnownEvents) && !name.empty()) {
      spec.metric.type = row->type;
      spec.metric.config = row->config;
      spec.metric.is_time = row->is_time;
      if (row->is_time) spec.metric.unit = "nanoseconds";
      spec.every = row->every;
      name = row->name;
    } else if (parse_raw(name, spec.metric.config)) {
      spec.metric.type = PERF_TYPE_RAW;
    } else {
      return fail("unknown event \"" + std::string(text) + "\"; there are cycles, instructions, cache-misses, branch-misses, "
                  "cpu-clock, task-clock, page-faults, context-switches, rNNN and the tracepoints of tracefs");
    }
  }
  spec.only_user = user;
  spec.only_kernel = kernel;
  spec.metric.name = std::string(name) + (user ? ":u" : kernel ? ":k" : "");
  return spec;
}

Result<std::vector<EventSpec>> parse_events(std::string_view text, int group, const std::vector<std::string>& tracefs) {
  std::vector<EventSpec> specs;
  if (!text.starts_with('{')) {
    specs.push_back(TRY(parse_event(text, tracefs)));
    return specs;
  }
  if (!text.ends_with('}')) return fail("-e " + std::string(text) + ": a group is {a,b}; write :u and :k after its events");
  std::string_view rest = text.substr(1, text.size() - 2);
  for (bool more = true; more;) {
    size_t comma = rest.find(',');
    more = comma != rest.npos;
    EventSpec spec = TRY(parse_event(rest.substr(0, comma), tracefs));
    spec.group = group;
    spec.leads_group = specs.empty();
    for (const EventSpec& other : specs)
      if (other.metric.name == spec.metric.name) return fail("-e " + std::string(text) + ": " + other.metric.name + " stands there twice");
    specs.push_back(std::move(spec));
    if (more) rest.remove_prefix(comma + 1);
  }
  if (specs.size() > kMostInGroup) return fail("-e " + std::string(text) + ": at most 16 events in a group");
  return specs;
}

void set_rate(EventSpec& spec, uint64_t period, uint64_t freq_hz) {
  event::Metric& metric = spec.metric;
  metric.period = metric.freq_hz = 0;
  if (spec.is_read_only()) return;
  if (period) metric.period = period;
  else if (spec.every) metric.period = 1;
  else if (metric.is_time) metric.period = std::max<uint64_t>(1, 1'000'000'000 / std::max<uint64_t>(1, freq_hz));
  else metric.freq_hz = freq_hz;
}

}  // namespace cprof::collect
