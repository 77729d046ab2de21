#include "serve/function_code.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <map>

#include "analyze/frames.h"
#include "analyze/site_totals.h"
#include "analyze/weights.h"
#include "object/debug_files.h"
#include "source/binary.h"
#include "source/code.h"
#include "timeline/timeline.h"

namespace cprof::serve {
namespace {

using nlohmann::json;
using profile::LocationId;
using profile::Profile;

constexpr uint32_t kAround = 12;       // lines before the first and after the last that the profile knows
constexpr uint32_t kMostLines = 4000;

// Every place of the function in the profile, and whether its code is the function's own there.
template <typename OnPlace>
void for_each_place(const Profile& profile, const page::FunctionKey& function, OnPlace&& on_place) {
  analyze::FrameWalker walker(profile);
  for (size_t i = 0; i < profile.locations.size(); ++i) {
    const profile::Location& location = profile.locations[i];
    for (uint16_t line = 0; line < location.line_count; ++line) {
      const analyze::Frame frame = walker.frame(LocationId(i), line);
      if (frame.name == function.name && frame.module == function.module && frame.file == function.file)
        on_place(LocationId(i), frame, line + 1 == location.line_count);
    }
  }
}

// By the page's number of a metric: behind the profile's own ones come samples and elapsed time (page/values.cc).
analyze::Weights weights_of(const Profile& profile, uint64_t metric) {
  using Kind = analyze::WeightSelection::Kind;
  const uint64_t own = profile.metrics.size();
  if (metric < own)
    return analyze::sample_weights(profile, {.kind = Kind::kMetric, .metric = profile::MetricId(static_cast<size_t>(metric))});
  if (metric == own) return analyze::sample_weights(profile, {.kind = Kind::kSamples});
  const timeline::WallWeights wall = timeline::wall_weights(profile, timeline::resolved(profile, timeline::default_options(profile)));
  return analyze::sample_weights(profile, {.kind = Kind::kWall, .wall = wall.of_samples, .wall_off_cpu = wall.of_off_cpu,
                                           .wall_resumed = wall.of_resumed});
}

// By location: what ends there.
std::vector<int64_t> self_by_location(const Profile& profile, uint64_t metric) {
  const analyze::SiteTotals totals = analyze::sum_by_site(profile, weights_of(profile, metric));
  std::vector<int64_t> self(profile.locations.size());
  for (size_t i = 0; i < profile.sites.size(); ++i) {
    int64_t& sum = self[profile.sites[i].location.index()];
    sum = analyze::add_clamped(sum, totals.self(i));
  }
  return self;
}

int64_t recorded_here_ns(const Profile& profile) {
  utsname name{};
  return uname(&name) == 0 && profile.run.hostname == name.nodename ? static_cast<int64_t>(profile.run.start_realtime_ns) : 0;
}

struct Code {
  profile::MappingId mapping{};
  std::map<uint64_t, int64_t> self;  // by an address inside the instruction
};

json as_json(const std::vector<source::CodeLine>& code, const Code& values, const page::FunctionKey& function) {
  json lines = json::array();
  for (const source::CodeLine& line : code) {
    const uint64_t start = line.instruction.address;
    int64_t self = 0;
    for (auto it = values.self.lower_bound(start); it != values.self.end() && it->first < start + line.instruction.size; ++it)
      self = analyze::add_clamped(self, it->second);
    // Inlined code stands at the line of the function that it was inlined into, as in the costs of lines.
    const bool has_line = !line.places.empty() && line.places.back().file == function.file;
    json row = {{"address", fmt::format("{:x}", start)}, {"text", line.instruction.text},
                {"line", has_line ? line.places.back().line : 0}, {"self", self}};
    if (line.places.size() > 1) row["inlined"] = line.places.front().function;
    lines.push_back(std::move(row));
  }
  return lines;
}

}  // namespace

Result<json> function_source(const Profile& profile, const page::FunctionKey& function, source::SourceFiles& files) {
  if (function.file.empty()) return fail("the debug information does not say where this function was written");
  uint32_t first = 0, last = 0;
  for_each_place(profile, function, [&](LocationId id, const analyze::Frame& frame, bool) {
    const auto lines = profile.lines_of(id);
    const uint32_t start = profile.functions[lines[frame.line].function.index()].start_line;
    for (const uint32_t line : {start, frame.source_line}) {
      if (line == 0) continue;
      first = first == 0 ? line : std::min(first, line);
      last = std::max(last, line);
    }
  });
  const auto text = TRY(files.find(function.file));
  if (first == 0) first = 1, last = static_cast<uint32_t>(std::min<size_t>(text->size(), kMostLines));
  first = first > kAround ? first - kAround : 1;
  last = static_cast<uint32_t>(std::min<size_t>({last + kAround, text->size(), first + kMostLines}));
  json lines = json::array();
  for (uint32_t line = first; line <= last; ++line) lines.push_back(std::string(text->line(line)));
  const auto recorded = static_cast<int64_t>(profile.run.start_realtime_ns);
  return json{{"file", text->path()}, {"first_line", first}, {"lines", lines}, {"changed", recorded != 0 && text->changed_ns() > recorded}};
}

Result<json> function_code(const Profile& profile, const page::FunctionKey& function, uint64_t metric) {
  const std::vector<int64_t> self = self_by_location(profile, metric);
  std::map<std::pair<uint32_t, uint64_t>, Code> codes;  // by mapping and where the function begins
  bool is_kernel = false;
  for_each_place(profile, function, [&](LocationId id, const analyze::Frame&, bool is_own) {
    const profile::Location& location = profile.locations[id.index()];
    is_kernel |= location.kind == profile::FrameKind::kKernel;
    if (!is_own || location.kind != profile::FrameKind::kUser || !location.mapping.valid()) return;
    Code& code = codes[{location.mapping.value, location.function_start}];
    code.mapping = location.mapping;
    int64_t& sum = code.self[location.file_address - (location.is_return_address ? 1 : 0)];
    sum = analyze::add_clamped(sum, self[id.index()]);
  });
  if (codes.empty() && is_kernel) return fail("not supported: instructions of the kernel");
  if (codes.empty()) return fail("no code of its own: it was inlined everywhere, or the profile has no addresses of it");
  json lines = json::array();
  for (const auto& [key, code] : codes) {
    const profile::Mapping& mapping = profile.mappings[code.mapping.index()];
    const std::string path(profile.text(mapping.path));
    const auto file = TRY(source::open_binary({path, std::string(profile.text(mapping.build_id)), recorded_here_ns(profile)}));
    Diagnostics diagnostics;
    object::DebugFileFinder finder;
    const auto debug = finder.find(*file, path, std::nullopt, diagnostics);
    const auto range = source::function_at(*file, debug.get(), code.self.begin()->first);
    if (!range) return fail(fmt::format("{}: no symbol tells where the function begins and ends", path));
    const auto instructions = TRY(source::code_of(file, debug, *range, symbolize::DemangleStyle::kFull, diagnostics));
    for (json& line : as_json(instructions, code, function)) lines.push_back(std::move(line));
  }
  return json{{"lines", std::move(lines)}};
}

}  // namespace cprof::serve
