#include "profile/validate.h"

#include <fmt/format.h>

namespace cprof::profile {
namespace {

enum class Need : uint8_t { kRequired, kOptional };

class Checker {
 public:
  explicit Checker(const Profile& profile) : p_(profile) {}

  Result<void> run() {
    check_names();
    check_code();
    check_sites();
    check_values();
    check_time();
    if (problem_.empty()) return {};
    return fail(std::move(problem_));
  }

 private:
  template <typename Row, typename Check>
  void each(std::string_view table, const std::vector<Row>& rows, Check&& check) {
    table_ = table;
    for (row_ = 0; row_ < rows.size() && problem_.empty(); ++row_) check(rows[row_]);
  }

  void say(std::string what) {
    if (problem_.empty()) problem_ = fmt::format("{}[{}]: {}", table_, row_, what);
  }

  template <typename Tag>
  void in_range(std::string_view what, Id<Tag> id, size_t size, Need need = Need::kRequired) {
    if (!id.valid() && need == Need::kRequired) return say(fmt::format("no {}", what));
    if (id.valid() && id.index() >= size) say(fmt::format("{} {} of {}", what, id.value, size));
  }

  void text(std::string_view what, StringId id) { in_range(what, id, p_.strings.size()); }

  void require(bool holds, std::string_view what) {
    if (!holds) say(std::string(what));
  }

  void check_names() {
    each("processes", p_.processes, [&](const Process& r) {
      text("name", r.name);
      text("cgroup", r.cgroup);
      require(r.end_ns == 0 || r.end_ns >= r.start_ns, "ends before it starts");
    });
    each("threads", p_.threads, [&](const Thread& r) {
      in_range("process", r.process, p_.processes.size());
      text("name", r.name);
      require(r.end_ns == 0 || r.end_ns >= r.start_ns, "ends before it starts");
    });
    each("metrics", p_.metrics, [&](const Metric& r) {
      text("name", r.name);
      text("unit", r.unit);
    });
  }

  void check_code() {
    each("mappings", p_.mappings, [&](const Mapping& r) {
      text("path", r.path);
      text("build_id", r.build_id);
    });
    each("functions", p_.functions, [&](const Function& r) {
      text("name", r.name);
      text("system_name", r.system_name);
      text("file", r.file);
    });
    each("lines", p_.lines, [&](const Line& r) { in_range("function", r.function, p_.functions.size()); });
    each("locations", p_.locations, [&](const Location& r) {
      in_range("mapping", r.mapping, p_.mappings.size(), Need::kOptional);
      require(uint64_t{r.first_line} + r.line_count <= p_.lines.size(), "lines out of range");
      require(r.kind <= FrameKind::kUnknown, "kind out of range");
    });
  }

  void check_sites() {
    each("sites", p_.sites, [&](const CallSite& r) {
      in_range("location", r.location, p_.locations.size());
      if (!r.parent.valid()) return require(r.depth == 0, "a root that is not at depth 0");
      if (r.parent.index() >= row_) return say(fmt::format("parent {} does not come before it", r.parent.value));
      require(r.depth == p_.sites[r.parent.index()].depth + 1, "depth is not its parent's + 1");
    });
  }

  void check_values() {
    each("label_sets", p_.label_sets, [&](const std::pair<uint32_t, uint32_t>& r) {
      require(uint64_t{r.first} + r.second <= p_.labels.size(), "labels out of range");
    });
    each("labels", p_.labels, [&](const Label& r) {
      text("key", r.key);
      text("text", r.text);
      text("unit", r.unit);
    });
    each("aggregates", p_.aggregates, [&](const Aggregate& r) {
      in_range("site", r.site, p_.sites.size(), Need::kOptional);
      in_range("metric", r.metric, p_.metrics.size());
      in_range("labels", r.labels, p_.label_sets.size(), Need::kOptional);
      in_range("thread", r.thread, p_.threads.size(), Need::kOptional);
      require(r.end < StackEnd::kCount, "stack end out of range");
    });
  }

  void check_time() {
    each("samples", p_.samples, [&](const Sample& r) {
      in_range("thread", r.thread, p_.threads.size());
      in_range("site", r.site, p_.sites.size(), Need::kOptional);
      in_range("metric", r.metric, p_.metrics.size());
      in_range("labels", r.labels, p_.label_sets.size(), Need::kOptional);
      require(r.end < StackEnd::kCount, "stack end out of range");
      require(row_ == 0 || p_.samples[row_ - 1].time_ns <= r.time_ns, "earlier than the sample before it");
    });
    each("on_cpu", p_.on_cpu, [&](const SwitchInterval& r) {
      in_range("thread", r.thread, p_.threads.size());
      require(r.start_ns <= r.end_ns, "ends before it starts");
      if (row_ == 0) return;
      const SwitchInterval& last = p_.on_cpu[row_ - 1];
      require(std::pair(last.thread, last.start_ns) <= std::pair(r.thread, r.start_ns), "out of order");
    });
    each("off_cpu", p_.off_cpu, [&](const OffCpuInterval& r) { check_off_cpu(r); });
    each("breaks", p_.breaks, [&](const Break& r) {
      in_range("thread", r.thread, p_.threads.size());
      in_range("metric", r.metric, p_.metrics.size(), Need::kOptional);
      if (row_ == 0) return;
      const Break& last = p_.breaks[row_ - 1];
      require(std::pair(last.thread, last.time_ns) <= std::pair(r.thread, r.time_ns), "out of order");
    });
    check_tracks();
  }

  void check_tracks() {
    each("tracks", p_.tracks, [&](const Track& r) {
      text("name", r.name);
      text("unit", r.unit);
      in_range("process", r.process, p_.processes.size(), Need::kOptional);
      in_range("thread", r.thread, p_.threads.size(), Need::kOptional);
    });
    each("slices", p_.slices, [&](const Slice& r) { check_lane(r); });
    each("marks", p_.marks, [&](const Mark& r) { check_lane(r); });
    each("counters", p_.counters, [&](const CounterValue& r) { in_range("track", r.track, p_.tracks.size()); });
  }

  // What lies on a thread or on a track of its own.
  template <typename Row>
  void check_lane(const Row& r) {
    in_range("thread", r.thread, p_.threads.size(), r.track.valid() ? Need::kOptional : Need::kRequired);
    in_range("track", r.track, p_.tracks.size(), Need::kOptional);
    in_range("labels", r.labels, p_.label_sets.size(), Need::kOptional);
    text("name", r.name);
    text("category", r.category);
  }

  void check_off_cpu(const OffCpuInterval& r) {
    in_range("thread", r.thread, p_.threads.size());
    in_range("site", r.site, p_.sites.size(), Need::kOptional);
    in_range("waker", r.waker, p_.threads.size(), Need::kOptional);
    require(r.start_ns <= r.end_ns, "ends before it starts");
    require(r.woken_ns == 0 || (r.start_ns <= r.woken_ns && r.woken_ns <= r.end_ns), "woken at a time outside it");
    require(r.wait_class < WaitClass::kCount, "class out of range");
    require(r.end < StackEnd::kCount, "stack end out of range");
    if (row_ == 0) return;
    const OffCpuInterval& last = p_.off_cpu[row_ - 1];
    require(std::pair(last.thread, last.end_ns) <= std::pair(r.thread, r.start_ns) || last.thread < r.thread,
            "overlaps the one before it, or is out of order");
  }

  const Profile& p_;
  std::string_view table_;
  size_t row_ = 0;
  std::string problem_;
};

}  // namespace

Result<void> validate(const Profile& profile) { return Checker(profile).run(); }

}  // namespace cprof::profile
