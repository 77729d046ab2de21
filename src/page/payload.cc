#include "page/payload.h"

#include <libdeflate.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "analyze/quality.h"
#include "analyze/weights.h"
#include "base/string_table.h"
#include "page/columns.h"
#include "page/layout.h"
#include "page/source_parts.h"
#include "page/values.h"
#include "timeline/timeline.h"

namespace cprof::page {
namespace {

using nlohmann::json;
using profile::Profile;
using Type = Column::Type;

constexpr uint32_t kVersion = 1;
constexpr int kCompression = 6;

// The run's start, else the first time that anything has.
uint64_t first_time(const Profile& profile) {
  if (profile.run.start_ns) return profile.run.start_ns;
  uint64_t first = profile.samples.empty() ? UINT64_MAX : profile.samples.front().time_ns;
  for (const auto& off : profile.off_cpu) first = std::min(first, off.start_ns);
  for (const auto& slice : profile.slices) first = std::min(first, slice.start_ns);
  for (const auto& mark : profile.marks) first = std::min(first, mark.time_ns);
  for (const auto& value : profile.counters) first = std::min(first, value.time_ns);
  return first == UINT64_MAX ? 0 : first;
}

class Encoder {
 public:
  Encoder(const Profile& profile, const PayloadOptions& options)
      : profile_(profile), options_(options), tree_(profile), start_ns_(first_time(profile)) {}

  std::string run() {
    values_ = collect_values(profile_, tree_);
    layout_ = lay_out(tree_, values_, options_.max_nodes);
    add_tree();
    add_functions();
    add_threads();
    const bool keeps_rows = values_.rows.size() <= options_.max_rows;
    if (keeps_rows) {
      add_rows();
      add_labels();
      add_states();
      add_tracks();
    }
    if (options_.with_source) add_source();
    add_strings();
    return joined(header(keeps_rows));
  }
  const std::vector<PageFunction>& functions() const { return tree_.functions(); }

 private:
  uint64_t text(std::string_view t) { return strings_.intern(t).value; }
  uint64_t text(StringId id) { return text(profile_.text(id)); }

  // Pre-order; `up` is how many levels lie between a node's parent and the node before it.
  void add_tree() {
    Column &function = columns_.make("tree.func"), &up = columns_.make("tree.up"), &line = columns_.make("tree.line"),
           &inlined = columns_.make("tree.inlined");
    std::vector<uint32_t> depth(tree_.nodes().size());
    uint32_t last = 0;
    for (size_t i = 1; i < layout_.order.size(); ++i) {
      const uint32_t at = layout_.order[i];
      const TreeNode& node = tree_.nodes()[at];
      depth[at] = depth[node.parent] + 1;
      up.add(last - depth[node.parent]);
      last = depth[at];
      function.add(node.function);
      line.add(node.line);
      inlined.add(node.is_inlined ? 1 : 0);
    }
    add_self();
  }

  void add_self() {
    std::vector<std::vector<int64_t>> self(values_.metrics.size(), std::vector<int64_t>(layout_.order.size()));
    for (const ValueRow& row : values_.rows) {
      const uint32_t place = layout_.place[row.node];
      for_each_metric(values_, row, [&](uint32_t m, int64_t v) { self[m][place] = analyze::add_clamped(self[m][place], v); });
    }
    for (size_t m = 0; m < self.size(); ++m) {
      Column& column = columns_.make("tree.self." + std::to_string(m), Type::kSigned);
      for (size_t i = 1; i < self[m].size(); ++i) column.add_signed(self[m][i]);
    }
  }

  void add_functions() {
    Column &name = columns_.make("funcs.name"), &system = columns_.make("funcs.system_name"), &file = columns_.make("funcs.file"),
           &module = columns_.make("funcs.module"), &path = columns_.make("funcs.path"), &line = columns_.make("funcs.line"), &kind = columns_.make("funcs.kind"),
           &named = columns_.make("funcs.named");
    for (const PageFunction& f : tree_.functions()) {
      name.add(text(f.name));
      system.add(text(f.system_name == f.name ? std::string_view() : f.system_name));
      file.add(text(f.file));
      module.add(text(f.module));
      path.add(text(f.path == f.module ? std::string_view() : f.path));
      line.add(f.start_line);
      kind.add(static_cast<uint64_t>(f.kind));
      named.add(f.is_named ? 1 : 0);
    }
  }

  void add_threads() {
    Column &pid = columns_.make("threads.pid", Type::kSigned), &tid = columns_.make("threads.tid", Type::kSigned),
           &name = columns_.make("threads.name"), &process = columns_.make("threads.process"), &start = columns_.make("threads.start"),
           &end = columns_.make("threads.end");
    for (const profile::Thread& t : profile_.threads) {
      const profile::Process* owner = t.process.valid() ? &profile_.processes[t.process.index()] : nullptr;
      pid.add_signed(owner ? owner->pid : t.tid);
      tid.add_signed(t.tid);
      name.add(text(t.name));
      process.add(text(owner ? owner->name : t.name));
      start.add(since_start(t.start_ns));
      end.add(since_start(t.end_ns));
    }
  }

  // Times in the payload are nanoseconds since start_ns_; 0 stays 0.
  uint64_t since_start(uint64_t time_ns) const { return time_ns > start_ns_ ? time_ns - start_ns_ : 0; }

  void add_rows() {
    Column &node = columns_.make("rows.node"), &thread = columns_.make("rows.thread"), &metric = columns_.make("rows.metric"),
           &value = columns_.make("rows.value", Type::kSigned), &labels = columns_.make("rows.labels"),
           &is_sample = columns_.make("rows.is_sample"), &wall = columns_.make("rows.wall", Type::kSigned),
           &time = columns_.make("rows.time", Type::kSigned);
    int64_t last = 0;
    for (const ValueRow& row : values_.rows) {
      node.add(layout_.place[row.node]);
      thread.add(row.thread.valid() ? row.thread.value + uint64_t{1} : 0);
      metric.add(row.metric);
      value.add_signed(row.value);
      labels.add(row.labels.valid() ? row.labels.value + uint64_t{1} : 0);
      is_sample.add(row.is_sample ? 1 : 0);
      wall.add_signed(row.wall_ns);
      const auto now = static_cast<int64_t>(since_start(row.time_ns));
      time.add_signed(now - last);
      last = now;
    }
  }

  // Each set: how many labels, then theirs.
  void add_labels() {
    Column &count = columns_.make("label_sets.count"), &key = columns_.make("labels.key"), &value = columns_.make("labels.text");
    for (auto [first, n] : profile_.label_sets) {
      count.add(n);
      for (uint32_t i = first; i < first + n; ++i) {
        const profile::Label& label = profile_.labels[i];
        key.add(text(label.key));
        const std::string number = std::to_string(label.number) + std::string(profile_.text(label.unit));
        value.add(label.is_number ? text(number) : text(label.text));
      }
    }
  }

  void add_states() {
    Column &thread = columns_.make("states.thread"), &start = columns_.make("states.start", Type::kSigned),
           &length = columns_.make("states.duration"), &state = columns_.make("states.state");
    int64_t last = 0;
    timeline::for_each_state(profile_, [&](const timeline::StateSlice& s) {
      thread.add(s.thread.value);
      const auto now = static_cast<int64_t>(since_start(s.start_ns));
      start.add_signed(now - last);
      last = now;
      length.add(s.end_ns - s.start_ns);
      state.add(state_number(s));
    });
  }

  // 0 on a CPU, 1 runnable, 2 unknown, 3 and up the wait classes in profile::WaitClass' order (meta.wait_classes).
  static uint64_t state_number(const timeline::StateSlice& s) {
    switch (s.state) {
      case timeline::ThreadState::kOnCpu: return 0;
      case timeline::ThreadState::kRunnable: return 1;
      case timeline::ThreadState::kUnknown: return 2;
      case timeline::ThreadState::kWaiting: break;
    }
    return 3 + static_cast<uint64_t>(s.wait_class);
  }

  // What programs said themselves. A lane is a thread or a track of its own.
  void add_tracks() {
    Column &name = columns_.make("tracks.name"), &unit = columns_.make("tracks.unit"), &thread = columns_.make("tracks.thread");
    for (const profile::Track& t : profile_.tracks) {
      name.add(text(t.name));
      unit.add(text(t.unit));
      thread.add(t.thread.valid() ? t.thread.value + uint64_t{1} : 0);
    }
    add_lanes("spans", profile_.slices, [](const profile::Slice& s) { return s.start_ns; });
    Column &duration = columns_.make("spans.duration"), &depth = columns_.make("spans.depth");
    for (const profile::Slice& s : profile_.slices) {
      duration.add(s.is_open && profile_.run.end_ns > s.start_ns ? profile_.run.end_ns - s.start_ns : s.duration_ns);
      depth.add(s.depth);
    }
    add_lanes("marks", profile_.marks, [](const profile::Mark& m) { return m.time_ns; });
    add_counters();
  }

  void add_counters() {
    Column &track = columns_.make("counters.track"), &time = columns_.make("counters.time", Type::kSigned), &value = columns_.make("counters.value", Type::kBytes);
    int64_t last = 0;
    for (const profile::CounterValue& v : profile_.counters) {
      track.add(v.track.value);
      const auto now = static_cast<int64_t>(since_start(v.time_ns));
      time.add_signed(now - last);
      last = now;
      const auto bits = std::bit_cast<std::array<char, 8>>(v.value);
      value.add_bytes({bits.data(), bits.size()});
    }
  }

  template <typename Row, typename TimeOf>
  void add_lanes(const std::string& table, const std::vector<Row>& rows, TimeOf&& time_of) {
    Column &thread = columns_.make(table + ".thread"), &track = columns_.make(table + ".track"), &name = columns_.make(table + ".name"),
           &category = columns_.make(table + ".category"), &time = columns_.make(table + ".time", Type::kSigned);
    int64_t last = 0;
    for (const Row& row : rows) {
      thread.add(row.thread.valid() ? row.thread.value + uint64_t{1} : 0);
      track.add(row.track.valid() ? row.track.value + uint64_t{1} : 0);
      name.add(text(row.name));
      category.add(text(row.category));
      const auto now = static_cast<int64_t>(since_start(time_of(row)));
      time.add_signed(now - last);
      last = now;
    }
  }

  void add_source() {
    Column &file = columns_.make("source.file"), &first = columns_.make("source.first_line"), &lines = columns_.make("source.text"),
           &changed = columns_.make("source.changed");
    source::SourceFiles files(options_.source_roots);
    for (const SourcePart& part : source_parts(profile_, tree_, values_, files)) {
      file.add(text(part.file));
      first.add(part.first_line);
      lines.add(text(part.text));
      changed.add(part.is_changed ? 1 : 0);
    }
  }

  void add_strings() {
    Column &length = columns_.make("strings.length"), &bytes = columns_.make("strings.bytes", Type::kBytes);
    for (size_t i = 0; i < strings_.size(); ++i) {
      const std::string_view t = strings_[StringId(i)];
      length.add(t.size());
      bytes.add_bytes(t);
    }
  }

  json header(bool keeps_rows) const {
    json metrics = json::array(), columns = json::array(), classes = json::array();
    for (const PageMetric& m : values_.metrics)
      metrics.push_back({{"name", m.name}, {"unit", m.unit}, {"kind", m.kind}, {"default", m.is_default}});
    for (const Column& c : columns_.all())
      columns.push_back({{"name", c.name()}, {"type", c.type_name()}, {"count", c.count()}, {"bytes", c.bytes().size()}});
    for (size_t i = 0; i < static_cast<size_t>(profile::WaitClass::kCount); ++i)
      classes.push_back(profile::name_of(static_cast<profile::WaitClass>(i)));
    json meta = run_facts();
    meta["has_rows"] = keeps_rows;
    meta["samples_metric"] = number_or_null(values_.samples_metric);
    meta["wall_metric"] = number_or_null(values_.wall_metric);
    meta["pruned_nodes"] = layout_.pruned_nodes;
    meta["wait_classes"] = classes;
    meta["frame_kinds"] = {"user", "kernel", "jit", "interpreted", "unknown"};
    return {{"meta", meta}, {"metrics", metrics}, {"columns", columns}};
  }

  static json number_or_null(uint32_t id) { return id == PageValues::kNone ? json() : json(id); }

  json run_facts() const {
    const profile::RunInfo& run = profile_.run;
    const analyze::StackQuality quality = analyze::stack_quality(profile_);
    json warnings = json::array();
    for (const auto& [name, entry] : profile_.diagnostics.entries())
      warnings.push_back({{"name", name}, {"severity", static_cast<int>(entry.severity)}, {"count", entry.count},
                          {"text", entry.description}, {"example", entry.example}});
    json ends = json::array();
    for (size_t i = 0; i < quality.by_end.size(); ++i) {
      const auto end = static_cast<profile::StackEnd>(i);
      if (quality.by_end[i] && profile::is_incomplete(end))
        ends.push_back({{"name", profile::name_of(end)}, {"count", quality.by_end[i]}, {"text", profile::description_of(end)}});
    }
    return {{"tool", run.tool}, {"source", run.source}, {"command", run.command}, {"host", run.hostname}, {"kernel", run.kernel_release},
            {"start_realtime_ns", std::to_string(run.start_realtime_ns)}, {"start_ns", std::to_string(start_ns_)},
            {"duration_ns", run.end_ns > run.start_ns ? run.end_ns - run.start_ns : 0},
            {"interval_ns", run.sampling_interval_ns}, {"cpus", run.cpus}, {"has_switches", run.has_switches}, {"has_off_cpu", run.has_off_cpu},
            {"collector_cpu_ns", run.collector_cpu_ns}, {"samples", quality.samples}, {"unwound", quality.unwound},
            {"incomplete", quality.incomplete}, {"incomplete_by_reason", ends}, {"frames", quality.frames},
            {"unnamed_frames", quality.unnamed_frames}, {"warnings", warnings}, {"comments", run.comments}};
  }

  // "CPV1", version, length of the header, header, columns.
  std::string joined(const json& head) const {
    // Names come from files that anybody may have written: what is not UTF-8 becomes U+FFFD.
    const std::string text = head.dump(-1, ' ', false, json::error_handler_t::replace);
    std::string out = "CPV1";
    for (const uint32_t word : {kVersion, static_cast<uint32_t>(text.size())})
      for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(word >> shift);
    out += text;
    for (const Column& c : columns_.all()) out += c.bytes();
    return out;
  }

  const Profile& profile_;
  const PayloadOptions& options_;
  LineTree tree_;
  const uint64_t start_ns_;
  PageValues values_;
  TreeLayout layout_;
  StringTable strings_;
  Columns columns_;
};

}  // namespace

std::string encode_payload(const Profile& profile, const PayloadOptions& options, std::vector<FunctionKey>* functions) {
  Encoder encoder(profile, options);
  std::string payload = encoder.run();
  if (functions)
    for (const PageFunction& f : encoder.functions()) functions->push_back({std::string(f.name), std::string(f.module), std::string(f.file)});
  return payload;
}

Result<std::string> pack_payload(const std::string& payload) {
  auto* compressor = libdeflate_alloc_compressor(kCompression);
  if (!compressor) return fail("out of memory");
  std::string packed(libdeflate_gzip_compress_bound(compressor, payload.size()), '\0');
  packed.resize(libdeflate_gzip_compress(compressor, payload.data(), payload.size(), packed.data(), packed.size()));
  libdeflate_free_compressor(compressor);
  return packed;
}

}  // namespace cprof::page
