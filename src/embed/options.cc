#include "embed/options.h"

#include <signal.h>

#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace cprof::embed {
namespace {

using Setter = Result<void> (*)(Options&, std::string_view value);

std::unexpected<Error> refuse(std::string_view value, std::string_view wanted) {
  return fail(fmt::format("'{}' is not {}", value, wanted));
}

Result<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < 0)
    return refuse(text, "a number");
  return value;
}

Result<uint64_t> whole(std::string_view text, uint64_t low, uint64_t high) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    return refuse(text, fmt::format("a whole number from {} to {}", low, high));
  return value;
}

Result<uint64_t> bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const uint64_t factor = unit == std::string_view::npos ? 1 : uint64_t{1024} << (10 * unit);
  if (factor > 1) text.remove_suffix(1);
  const uint64_t value = TRY(whole(text, 1, uint64_t{1} << 20));
  return value * factor;
}

// "10ms", "2s", "1.5": seconds without a unit.
Result<uint64_t> duration_ns(std::string_view text) {
  double factor = 1e9;
  for (const auto& [suffix, value] : {std::pair{std::string_view("ms"), 1e6}, {"us", 1e3}, {"ns", 1.0}, {"s", 1e9}}) {
    if (!text.ends_with(suffix)) continue;
    text.remove_suffix(suffix.size());
    factor = value;
    break;
  }
  const double value = TRY(number(text)) * factor;
  if (value < 1 || value > 1e18) return refuse(text, "a time");
  return static_cast<uint64_t>(value);
}

template <typename T>
struct Word {
  std::string_view word;
  T value;
};

template <typename T, size_t kCount>
Result<void> choose(T& into, std::string_view text, const Word<T> (&words)[kCount]) {
  std::string known;
  for (const Word<T>& word : words) {
    if (word.word == text) {
      into = word.value;
      return {};
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", word.word);
  }
  return refuse(text, "one of " + known);
}

Result<void> set_out(Options& options, std::string_view value) {
  if (value.empty()) return refuse(value, "a file");
  options.outputs.emplace_back(value);
  return {};
}

Result<void> set_freq(Options& options, std::string_view value) {
  options.frequency_hz = static_cast<uint32_t>(TRY(whole(value, 0, 100'000)));
  return {};
}

Result<void> set_mode(Options& options, std::string_view value) {
  return choose(options.mode, value, {Word<Mode>{"cpu", Mode::kCpu}, {"wall", Mode::kWall}});
}

Result<void> set_overflow(Options& options, std::string_view value) {
  return choose(options.overflow, value, {Word<Overflow>{"drop", Overflow::kDrop}, {"overwrite", Overflow::kOverwrite}});
}

Result<void> set_children(Options& options, std::string_view value) {
  return choose(options.children, value,
                {Word<Children>{"yes", Children::kYes}, {"no", Children::kNo}, {"exec", Children::kExec}});
}

Result<void> set_kernel(Options& options, std::string_view value) {
  return choose(options.with_kernel, value, {Word<bool>{"yes", true}, {"no", false}});
}

Result<void> set_events(Options& options, std::string_view value) {
  return choose(options.timers_only, value, {Word<bool>{"auto", false}, {"timer", true}});
}

Result<void> set_quiet(Options& options, std::string_view value) {
  return choose(options.quiet, value, {Word<bool>{"yes", true}, {"no", false}});
}

Result<void> set_ring(Options& options, std::string_view value) {
  const uint64_t records = TRY(whole(value, 256, uint64_t{1} << 24));
  if (records & (records - 1)) return refuse(value, "a power of two");
  options.ring_records = records;
  return {};
}

Result<void> set_buffer(Options& options, std::string_view value) {
  options.buffer_bytes = TRY(bytes(value));
  return {};
}

Result<void> set_window(Options& options, std::string_view value) {
  const size_t slash = value.find('/');
  if (slash == std::string_view::npos) return refuse(value, "ON/PERIOD");
  options.window_on_ns = TRY(duration_ns(value.substr(0, slash)));
  options.window_period_ns = TRY(duration_ns(value.substr(slash + 1)));
  if (options.window_on_ns > options.window_period_ns) return refuse(value, "a part of its period");
  return {};
}

Result<void> set_signal(Options& options, std::string_view value) {
  return choose(options.trigger_signal, value,
                {Word<int>{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"PROF", SIGPROF}, {"WINCH", SIGWINCH}});
}

Result<void> set_seconds(Options& options, std::string_view value) {
  options.trigger_seconds = static_cast<double>(TRY(duration_ns(value))) / 1e9;
  return {};
}

Result<void> set_start(Options& options, std::string_view value) {
  return choose(options.waits, value, {Word<bool>{"yes", false}, {"no", true}});
}

// The last '>' is the sign: names may hold others.
Result<void> set_trigger(Options& options, std::string_view value) {
  const size_t sign = value.rfind('>');
  if (sign == std::string_view::npos || sign == 0) return refuse(value, "NAME>TIME");
  options.scope_limits.push_back({std::string(value.substr(0, sign)), TRY(duration_ns(value.substr(sign + 1)))});
  return {};
}

Result<void> set_keep(Options& options, std::string_view value) {
  options.keep_ns = TRY(duration_ns(value));
  return {};
}

struct Key {
  std::string_view name;
  Setter set;
};

constexpr Key kKeys[] = {
    {"out", set_out},         {"freq", set_freq},     {"mode", set_mode},     {"overflow", set_overflow},
    {"children", set_children}, {"kernel", set_kernel}, {"events", set_events}, {"quiet", set_quiet},
    {"ring", set_ring},       {"buffer", set_buffer}, {"window", set_window}, {"signal", set_signal},
    {"seconds", set_seconds}, {"start", set_start}, {"trigger", set_trigger}, {"keep", set_keep},
};

const Key* find_key(std::string_view name) {
  for (const Key& key : kKeys)
    if (key.name == name) return &key;
  return nullptr;
}

Result<void> check(const Options& options) {
  if (options.trigger_signal && options.trigger_seconds == 0) return fail("signal= needs seconds=, the length of its session");
  if (!options.scope_limits.empty() && !options.keep_ns) return fail("trigger= needs keep=, how much of the past its report holds");
  if (!options.trigger_signal && options.trigger_seconds > 0) return fail("seconds= is the length of a session that signal= starts");
  return {};
}

}  // namespace

Result<Options> parse_options(std::string_view text) {
  Options options;
  bool chooses_overflow = false;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    const Key* key = find_key(name);
    if (!key || equals == std::string_view::npos) return fail(fmt::format("options of cprof: '{}' is no KEY=VALUE that is known", item));
    auto set = key->set(options, item.substr(equals + 1));
    if (!set) return std::unexpected(in_context(fmt::format("options of cprof: {}", name), std::move(set.error())));
    chooses_overflow |= name == "overflow";
  }
  // A flight recorder wants the newest.
  if (options.keep_ns && !chooses_overflow) options.overflow = Overflow::kOverwrite;
  if (auto checked = check(options); !checked) return std::unexpected(in_context("options of cprof", std::move(checked.error())));
  return options;
}

}  // namespace cprof::embed
