// The tree comes as nodes that name their children (in newer files their parent), in any order, beside or behind the
// samples; so all is kept as it comes and put together at the end. Old files nest the nodes in each other instead
// ("head"): those are refused.
#include "format/cpuprofile/cpuprofile.h"

#include <fmt/format.h>

#include "format/cpuprofile/v8_tree.h"
#include "format/input.h"
#include "format/json/json_head.h"
#include "format/json/json_nodes.h"
#include "format/json/json_number.h"
#include "profile/builder.h"

namespace cprof::format {
namespace {

constexpr uint64_t kMicrosecond = 1000;
constexpr uint64_t kMaxMicroseconds = INT64_MAX / kMicrosecond;

Result<int64_t> as_whole(std::string_view literal) {
  const auto value = scaled_number(literal, 0);
  if (!value) return fail(fmt::format("{} is not a number that 64 bits hold", literal));
  return *value;
}

class CpuProfileReader {
 public:
  explicit CpuProfileReader(std::string name) : name_(std::move(name)) { builder_.profile().run.source = name_; }

  Result<profile::Profile> read(InputStream stream) {
    JsonStream json(std::move(stream));
    JsonWalker walker(root_);
    TRY(json.parse(walker));
    if (has_head_) return fail(name_ + ": not supported: the nested nodes of Chrome before 58");
    if (tree_.nodes().empty()) return fail(name_ + ": no nodes");
    if (auto bad = tree_.index(); !bad) return refuse(bad.error().message);
    TRY(samples_.empty() ? add_hits() : add_samples());
    builder_.profile().run.default_metric = builder_.profile().metrics[0].name;
    return builder_.take();
  }

 private:
  using Number = std::string_view;

  // A number of the file into one of ours.
  static JsonNumber::Take into(int64_t& value) {
    return [&value](Number n) -> Result<void> {
      value = TRY(as_whole(n));
      return {};
    };
  }
  static JsonNumber::Take append_to(std::vector<int64_t>& values) {
    return [&values](Number n) -> Result<void> {
      values.push_back(TRY(as_whole(n)));
      return {};
    };
  }

  std::string name_;
  profile::ProfileBuilder builder_;
  V8Tree tree_{builder_};
  std::vector<int64_t> samples_, deltas_, timestamps_;
  int64_t start_us_ = 0, end_us_ = 0;
  bool has_head_ = false;
  V8Node node_;
  std::vector<int64_t> children_;

  JsonText function_name_{[this](std::string_view t) { return node_.name = builder_.intern(t), Result<void>(); }};
  JsonText url_{[this](std::string_view t) { return node_.url = builder_.intern(t), Result<void>(); }};
  JsonNumber line_{into(node_.line)}, column_{into(node_.column)};
  JsonObject call_frame_{
      {{"functionName", &function_name_}, {"url", &url_}, {"lineNumber", &line_}, {"columnNumber", &column_}}};
  JsonNumber id_{into(node_.id)}, parent_{into(node_.parent)}, hits_{into(node_.hits)}, child_{append_to(children_)};
  JsonList children_node_{&child_};
  JsonObject node_object_{{{"id", &id_},
                           {"parent", &parent_},
                           {"hitCount", &hits_},
                           {"callFrame", &call_frame_},
                           {"children", &children_node_}},
                          [this] { return begin_node(); },
                          [this] { return end_node(); }};
  JsonList nodes_node_{&node_object_};
  JsonNumber sample_{append_to(samples_)}, delta_{append_to(deltas_)}, timestamp_{append_to(timestamps_)};
  JsonList samples_node_{&sample_}, deltas_node_{&delta_}, timestamps_node_{&timestamp_};
  JsonNumber start_{into(start_us_)}, end_{into(end_us_)};
  JsonObject head_{{}, [this] { return has_head_ = true, Result<void>(); }};
  JsonObject root_{{{"nodes", &nodes_node_},
                    {"samples", &samples_node_},
                    {"timeDeltas", &deltas_node_},
                    {"timestamps", &timestamps_node_},
                    {"startTime", &start_},
                    {"endTime", &end_},
                    {"head", &head_}}};

  profile::MetricId metric_;
  profile::ThreadId thread_;

  std::unexpected<Error> refuse(std::string_view why) const { return fail(fmt::format("{}: {}", name_, why)); }

  Result<void> begin_node() {
    node_ = {};
    children_.clear();
    return {};
  }

  Result<void> end_node() {
    if (node_.id < 0) return fail("a node without an id");
    tree_.add(node_);
    for (int64_t child : children_) tree_.add_edge(node_.id, child);
    return {};
  }

  Result<profile::CallSiteId> site_of(int64_t id, std::string_view who) {
    auto site = tree_.site_of(id, who);
    if (!site) return refuse(site.error().message);
    return site;
  }

  Result<void> add_hits() {
    metric_ = builder_.add_metric("samples", "count");
    bool any = false;
    for (const V8Node& node : tree_.nodes()) {
      if (node.hits == 0) continue;
      any = true;
      builder_.add_aggregate({.site = TRY(site_of(node.id, "a node")), .metric = metric_, .value = node.hits});
    }
    return any ? Result<void>() : refuse("no samples");
  }

  // Times of all samples in nanoseconds, and the end. Deltas may be negative: V8 writes samples as they come.
  Result<std::vector<uint64_t>> times() const {
    const auto& told = timestamps_.empty() ? deltas_ : timestamps_;
    if (told.size() != samples_.size())
      return refuse(fmt::format("{} samples and {} times of them", samples_.size(), told.size()));
    std::vector<uint64_t> times;
    times.reserve(told.size() + 1);
    int64_t now = start_us_;
    for (int64_t value : told) {
      const bool is_sum = timestamps_.empty();
      if (is_sum && __builtin_add_overflow(now, value, &now)) return refuse("times that 64 bits do not hold");
      if (!is_sum) now = value;
      if (now < 0 || static_cast<uint64_t>(now) > kMaxMicroseconds) return refuse("times that 64 bits do not hold");
      times.push_back(static_cast<uint64_t>(now) * kMicrosecond);
    }
    return times;
  }

  Result<void> add_samples() {
    std::vector<uint64_t> at = TRY(times());
    metric_ = builder_.add_metric("duration", "nanoseconds");
    thread_ = builder_.add_thread(builder_.add_process(0, "javascript"), 1, "javascript");
    std::vector<size_t> order(at.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (!std::ranges::is_sorted(at)) {
      std::ranges::stable_sort(order, {}, [&](size_t i) { return at[i]; });
      builder_.profile().diagnostics.add("cpuprofile_unsorted", Severity::kInfo, "samples were put in the order of time");
    }
    const uint64_t last = at[order.back()];
    const bool has_end = end_us_ > 0 && static_cast<uint64_t>(end_us_) <= kMaxMicroseconds;
    const uint64_t end = std::max(last, has_end ? static_cast<uint64_t>(end_us_) * kMicrosecond : 0);
    for (size_t i = 0; i < order.size(); ++i) {
      const uint64_t next = i + 1 < order.size() ? at[order[i + 1]] : end;
      TRY(add_sample(samples_[order[i]], at[order[i]], next));
    }
    profile::RunInfo& run = builder_.profile().run;
    run.start_ns = at[order[0]];
    run.end_ns = end;
    return {};
  }

  Result<void> add_sample(int64_t id, uint64_t at, uint64_t next) {
    builder_.add_sample({.time_ns = at,
                         .weight = static_cast<int64_t>(next - at),
                         .thread = thread_,
                         .site = TRY(site_of(id, "a sample")),
                         .metric = metric_});
    return {};
  }
};

}  // namespace

const FormatInfo& cpuprofile_format() {
  static const FormatInfo info = {.name = "cpuprofile",
                                  .title = "V8 CPU profile",
                                  .extensions = {".cpuprofile"},
                                  .sniff = sniff_cpuprofile,
                                  .read = read_cpuprofile};
  return info;
}

bool sniff_cpuprofile(std::span<const std::byte> head) {
  const JsonHead json(head);
  if (json.has("nodes.[].callFrame") || json.has("head.hitCount")) return true;
  return json.has("timeDeltas") && (json.has("startTime") || json.has("endTime") || json.has("samples"));
}

Result<profile::Profile> read_cpuprofile(Input input, const ReadOptions& options) {
  std::string name = input.name;
  InputStream stream = TRY(InputStream::open(std::move(input), options));
  return CpuProfileReader(std::move(name)).read(std::move(stream));
}

}  // namespace cprof::format
