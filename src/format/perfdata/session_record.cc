#include "format/perfdata/session_record.h"

#include "base/byte_reader.h"

namespace cprof::format::perfdata {
namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kMostCommandBytes = 32 * 1024;
constexpr uint32_t kMostMetrics = 1024;

// Bits of words that began as a bool each.
enum SwitchBits : uint32_t { kHasSwitches = 1, kHasOffCpu = 2 };
enum MetricBits : uint32_t { kIsTime = 1, kIsSwitchStacks = 2 };

class Packer {
 public:
  template <typename T>
  void put(T value) {
    auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put_text(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

std::string read_sized_text(ByteReader& reader) {
  auto bytes = reader.bytes(reader.u32());
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

std::vector<std::byte> encode_session(const event::SessionInfo& info) {
  Packer out;
  out.put(kVersion);
  out.put(static_cast<uint32_t>(info.arch));
  out.put((info.has_switches ? kHasSwitches : 0u) | (info.has_off_cpu ? kHasOffCpu : 0u));
  out.put(static_cast<uint32_t>(info.has_kernel_stacks));
  out.put(info.cpus_online);
  out.put(info.start_ns);
  out.put(info.start_realtime_ns);
  out.put_text(std::string_view(info.command).substr(0, kMostCommandBytes));
  for (const std::string* text : {&info.hostname, &info.kernel_release, &info.kernel_stacks_missing}) out.put_text(*text);
  out.put(static_cast<uint32_t>(info.metrics.size()));
  for (const event::Metric& metric : info.metrics) {
    out.put_text(metric.name);
    out.put_text(metric.unit);
    out.put(metric.type);
    out.put(metric.config);
    out.put(metric.period);
    out.put(metric.freq_hz);
    out.put((metric.is_time ? kIsTime : 0u) | (metric.is_switch_stacks ? kIsSwitchStacks : 0u));
  }
  return out.take();
}

std::optional<event::SessionInfo> decode_session(std::span<const std::byte> payload) {
  ByteReader in(payload);
  if (in.u32() != kVersion) return std::nullopt;
  event::SessionInfo info;
  uint32_t arch = in.u32();
  if (arch > static_cast<uint32_t>(event::Arch::kAarch64)) return std::nullopt;
  info.arch = static_cast<event::Arch>(arch);
  const uint32_t switches = in.u32();
  info.has_switches = switches & kHasSwitches;
  info.has_off_cpu = switches & kHasOffCpu;
  info.has_kernel_stacks = in.u32() != 0;
  info.cpus_online = in.u32();
  info.start_ns = in.u64();
  info.start_realtime_ns = in.u64();
  for (std::string* text : {&info.command, &info.hostname, &info.kernel_release, &info.kernel_stacks_missing})
    *text = read_sized_text(in);
  uint32_t count = in.u32();
  if (count > kMostMetrics) return std::nullopt;
  for (uint32_t i = 0; i < count && in.ok(); i++) {
    event::Metric metric;
    metric.name = read_sized_text(in);
    metric.unit = read_sized_text(in);
    metric.type = in.u32();
    metric.config = in.u64();
    metric.period = in.u64();
    metric.freq_hz = in.u64();
    const uint32_t bits = in.u32();
    metric.is_time = bits & kIsTime;
    metric.is_switch_stacks = bits & kIsSwitchStacks;
    info.metrics.push_back(std::move(metric));
  }
  if (!in.ok()) return std::nullopt;
  return info;
}

}  // namespace cprof::format::perfdata
