// A table of the model that only grows is written from where the last call ended. One whose rows change in place is kept
// here as it was written, and its rows are compared: there are few of them. The order of values in each put() is that of
// the columns in stored_tables.cc.
#include "store/writer.h"

#include <fmt/format.h>

#include "base/container_name.h"
#include "profile/frame_name.h"
#include "store/code_names.h"
#include "store/run_facts.h"
#include "store/schema.h"
#include "store/slice_parents.h"

namespace cprof::store {
namespace {

using namespace profile;
using Number = std::optional<int64_t>;

constexpr std::array<std::string_view, 4> kSeverities = {"info", "notice", "error", "data_loss"};

template <typename Tag>
Number ref(Id<Tag> id) {
  return id.valid() ? Number(id.value) : std::nullopt;
}

// Ids that must be there.
template <typename Tag>
int64_t must(Id<Tag> id) {
  return id.value;
}

int64_t bits(uint64_t value) { return static_cast<int64_t>(value); }
Number time_or_null(uint64_t ns) { return ns ? Number(bits(ns)) : std::nullopt; }
template <typename Enum>
int64_t code(Enum value) {
  return static_cast<int64_t>(value);
}

bool same(const Process& a, const Process& b) {
  return a.pid == b.pid && a.name == b.name && a.start_ns == b.start_ns && a.end_ns == b.end_ns;
}
bool same(const Thread& a, const Thread& b) {
  return a.process == b.process && a.tid == b.tid && a.name == b.name && a.start_ns == b.start_ns && a.end_ns == b.end_ns;
}
bool same(const Mapping& a, const Mapping& b) {
  return a.path == b.path && a.build_id == b.build_id && a.start == b.start && a.end == b.end &&
         a.file_offset == b.file_offset && a.load_bias == b.load_bias && a.has_functions == b.has_functions &&
         a.has_filenames == b.has_filenames && a.has_line_numbers == b.has_line_numbers &&
         a.has_inline_frames == b.has_inline_frames;
}
bool same(const Aggregate& a, const Aggregate& b) {
  return a.site == b.site && a.metric == b.metric && a.labels == b.labels && a.value == b.value && a.thread == b.thread &&
         a.end == b.end;
}
bool same(const Track& a, const Track& b) {
  return a.name == b.name && a.unit == b.unit && a.process == b.process && a.thread == b.thread;
}

}  // namespace

Result<void> write_profile(Database& database, const Profile& profile) {
  Writer writer = TRY(Writer::create(database));
  return writer.append(profile);
}

Result<Writer> Writer::create(Database& database) {
  TRY(database.execute(schema_ddl()));
  Writer writer(database);
  TRY(writer.put_enums());
  return writer;
}

Result<Statement*> Writer::insert(std::string_view table) {
  auto it = inserts_.find(table);
  if (it == inserts_.end()) {
    const TableDef* def = find_table(table);
    CPROF_CHECK(def && def->view.empty());
    it = inserts_.emplace(table, TRY(database_->prepare(insert_sql(*def)))).first;
  }
  return &it->second;
}

// put(statement, number, row) for rows that are not written yet.
template <typename Row, typename Put>
Result<void> Writer::put_new(std::string_view table, const std::vector<Row>& rows, Put&& put) {
  size_t& count = counts_.try_emplace(std::string(table)).first->second;
  if (count >= rows.size()) return {};
  Statement& statement = *TRY(insert(table));
  for (; count < rows.size(); ++count) TRY(put(statement, static_cast<int64_t>(count), rows[count]));
  return {};
}

template <typename Row, typename Put>
Result<void> Writer::put_changed(std::string_view table, const std::vector<Row>& rows, std::vector<Row>& written, Put&& put) {
  if (rows.empty()) return {};
  Statement& statement = *TRY(insert(table));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i < written.size() && same(rows[i], written[i])) continue;
    TRY(put(statement, static_cast<int64_t>(i), rows[i]));
    if (i < written.size()) written[i] = rows[i];
    else written.push_back(rows[i]);
  }
  return {};
}

Result<void> Writer::clear() {
  for (const TableDef& table : all_tables())
    if (table.view.empty()) TRY(database_->execute(fmt::format("DELETE FROM {}", table.name)));
  Writer fresh(*database_);
  fresh.inserts_ = std::move(inserts_);
  *this = std::move(fresh);
  return put_enums();
}

Result<void> Writer::append(const Profile& profile, const Diagnostics& losses) {
  TRY(put_strings(profile));
  TRY(put_run(profile));
  TRY(put_stats(losses));
  TRY(put_tasks(profile));
  TRY(put_code(profile));
  TRY(put_labels(profile));
  TRY(put_aggregates(profile));
  TRY(put_samples(profile));
  TRY(put_switches(profile));
  TRY(put_tracks(profile));
  return put_slices(profile);
}

Result<void> Writer::put_enums() {
  Statement& statement = *TRY(insert("cprof_enum"));
  int64_t row = 0;
  for (const CodeType& type : all_code_types())
    for (size_t i = 0; i < type.count; ++i) TRY(statement.put(row++, type.type, static_cast<int64_t>(i), type.name(i)));
  return {};
}

Result<void> Writer::put_strings(const Profile& profile) {
  size_t& count = counts_["cprof_string"];
  if (count >= profile.strings.size()) return {};
  Statement& statement = *TRY(insert("cprof_string"));
  for (; count < profile.strings.size(); ++count)
    TRY(statement.put(static_cast<int64_t>(count), profile.text(StringId(count))));
  return {};
}

Result<void> Writer::put_run(const Profile& profile) {
  const RunInfo& run = profile.run;
  TRY(database_->execute("DELETE FROM metadata"));
  Statement& statement = *TRY(insert("metadata"));
  int64_t row = 0;
  auto put = [&](std::string_view name, Number number, std::optional<std::string_view> text,
                 std::string_view type = "single") -> Result<void> {
    if (text) return statement.put(row++, name, type, number, *text);
    return statement.put(row++, name, type, number, nullptr);
  };
  for (const RunFact& fact : all_run_facts()) {
    if (fact.text) TRY(put(fact.name, std::nullopt, run.*fact.text));
    if (fact.number) TRY(put(fact.name, bits(run.*fact.number), std::nullopt));
    if (fact.flag) TRY(put(fact.name, run.*fact.flag, std::nullopt));
  }
  TRY(put(kCpusFact, run.cpus, std::nullopt));
  TRY(put(kPeriodFact, run.period, std::nullopt));
  TRY(put(kDefaultMetricFact, must(run.default_metric), profile.text(run.default_metric)));
  for (const std::string& comment : run.comments) TRY(put(kCommentFact, std::nullopt, comment, "multi"));
  return put_new("cprof_metric", profile.metrics, [&](Statement& into, int64_t id, const Metric& m) {
    return into.put(id, profile.text(m.name), profile.text(m.unit), bits(m.period), int64_t{m.is_time});
  });
}

Result<void> Writer::put_stats(const Diagnostics& losses) {
  TRY(database_->execute("DELETE FROM stats"));
  Statement& statement = *TRY(insert("stats"));
  for (const auto& [name, entry] : losses.entries())
    TRY(statement.put(std::string_view(name), nullptr, nullptr, kSeverities[static_cast<size_t>(entry.severity)],
                      std::string_view("trace"), bits(entry.count), std::string_view(entry.description),
                      std::string_view(entry.example)));
  return {};
}

Result<void> Writer::put_tasks(const Profile& profile) {
  TRY(put_changed("process", profile.processes, processes_, [&](Statement& into, int64_t id, const Process& r) {
    const std::string_view cgroup = profile.text(r.cgroup);
    return into.put(id, int64_t{r.pid}, profile.text(r.name), time_or_null(r.start_ns), time_or_null(r.end_ns), cgroup,
                    std::string_view(container_of(cgroup)));
  }));
  return put_changed("thread", profile.threads, threads_, [&](Statement& into, int64_t id, const Thread& r) {
    const bool is_main = profile.processes[r.process.index()].pid == r.tid;
    return into.put(id, int64_t{r.tid}, profile.text(r.name), must(r.process), int64_t{is_main}, time_or_null(r.start_ns),
                    time_or_null(r.end_ns));
  });
}

Result<void> Writer::put_code(const Profile& profile) {
  TRY(put_changed("stack_profile_mapping", profile.mappings, mappings_, [&](Statement& into, int64_t id, const Mapping& r) {
    return into.put(id, profile.text(r.build_id), bits(r.file_offset), bits(r.start), bits(r.end), bits(r.load_bias),
                    profile.text(r.path), int64_t{r.has_functions}, int64_t{r.has_filenames},
                    int64_t{r.has_line_numbers}, int64_t{r.has_inline_frames});
  }));
  TRY(put_new("cprof_function", profile.functions, [](Statement& into, int64_t id, const Function& r) {
    return into.put(id, must(r.name), must(r.system_name), must(r.file), int64_t{r.start_line});
  }));
  TRY(put_new("cprof_line", profile.lines, [](Statement& into, int64_t id, const Line& r) {
    return into.put(id, must(r.function), int64_t{r.line}, int64_t{r.column});
  }));
  const auto put_location = [&](Statement& into, int64_t id, const Location& r) -> Result<void> {
    if (!r.mapping.valid()) TRY(put_unmapped());
    return into.put(id, ref(r.mapping), bits(r.address), bits(r.file_address), bits(r.function_start),
                    int64_t{r.first_line}, int64_t{r.line_count}, code(r.kind), int64_t{r.is_return_address},
                    int64_t{r.is_folded});
  };
  TRY(put_new("cprof_location", profile.locations, put_location));
  return put_new("stack_profile_callsite", profile.sites, [](Statement& into, int64_t id, const CallSite& r) {
    return into.put(id, int64_t{r.depth}, ref(r.parent), must(r.location));
  });
}

Result<void> Writer::put_labels(const Profile& profile) {
  TRY(put_new("cprof_label", profile.labels, [](Statement& into, int64_t id, const Label& r) {
    return into.put(id, must(r.key), must(r.text), r.number, must(r.unit), int64_t{r.is_number});
  }));
  return put_new("cprof_label_set", profile.label_sets, [](Statement& into, int64_t id, const auto& r) {
    return into.put(id, int64_t{r.first}, int64_t{r.second});
  });
}

Result<void> Writer::put_aggregates(const Profile& profile) {
  return put_changed("cprof_aggregate", profile.aggregates, aggregates_,
                     [&](Statement& into, int64_t id, const Aggregate& r) -> Result<void> {
                       if (!r.site.valid()) TRY(put_unknown());
                       return into.put(id, ref(r.site), must(r.metric), ref(r.labels), r.value, ref(r.thread), code(r.end));
                     });
}

Result<void> Writer::put_samples(const Profile& profile) {
  size_t& count = counts_["cprof_sample_chunk"];
  Statement& statement = *TRY(insert("cprof_sample_chunk"));
  auto put = [&](int index, const PackedColumn& column) {
    if (column.is_array) statement.bind(index, std::string_view(column.array));
    else statement.bind(index, column.value);
  };
  while (count < profile.samples.size()) {
    const auto samples = std::span(profile.samples).subspan(count).first(std::min(kChunkSamples, profile.samples.size() - count));
    const SampleChunk chunk = pack_samples(samples, contexts_);
    statement.bind(1, static_cast<int64_t>(count));
    statement.bind(2, chunk.ts);
    statement.bind(3, chunk.step);
    statement.bind(4, std::string_view(chunk.jitter));
    put(5, chunk.context);
    put(6, chunk.callsite);
    put(7, chunk.weight);
    TRY(statement.run());
    count += samples.size();
    if (std::ranges::any_of(samples, [](const Sample& s) { return !s.site.valid(); })) TRY(put_unknown());
  }
  return put_new("cprof_sample_context", contexts_.rows(), [](Statement& into, int64_t id, const Sample& r) {
    return into.put(id, must(r.thread), int64_t{r.cpu}, int64_t{r.in_kernel}, code(r.end), must(r.metric), ref(r.labels));
  });
}

Result<void> Writer::put_switches(const Profile& profile) {
  TRY(put_new("cprof_on_cpu", profile.on_cpu, [](Statement& into, int64_t id, const SwitchInterval& r) {
    return into.put(id, must(r.thread), bits(r.start_ns), bits(r.end_ns - r.start_ns), int64_t{r.cpu}, int64_t{r.preempted});
  }));
  return put_new("cprof_off_cpu", profile.off_cpu, [&](Statement& into, int64_t id, const OffCpuInterval& r) -> Result<void> {
    if (!r.site.valid()) TRY(put_unknown());
    const Number wait = r.woken_ns ? Number(bits(r.woken_ns - r.start_ns)) : std::nullopt;
    const int64_t flags = r.is_borrowed | r.is_guessed << 1 | r.is_open << 2 | r.is_uninterruptible << 3;
    return into.put(id, must(r.thread), bits(r.start_ns), bits(r.duration_ns()), wait, code(r.wait_class), ref(r.site),
                    code(r.end), ref(r.waker), int64_t{r.cpu}, flags);
  });
}

Result<void> Writer::put_tracks(const Profile& profile) {
  std::vector<bool> is_counter(profile.tracks.size());
  for (const CounterValue& value : profile.counters) is_counter[value.track.index()] = true;
  TRY(put_changed("cprof_track", profile.tracks, tracks_, [&](Statement& into, int64_t id, const Track& r) {
    return into.put(id, profile.text(r.name), profile.text(r.unit), ref(r.process), ref(r.thread),
                    int64_t{is_counter[static_cast<size_t>(id)]});
  }));
  return put_new("cprof_counter", profile.counters, [](Statement& into, int64_t id, const CounterValue& r) {
    return into.put(id, bits(r.time_ns), must(r.track), r.value);
  });
}

Result<void> Writer::put_slices(const Profile& profile) {
  const size_t first = counts_["cprof_slice"];
  const auto parents = slice_parents(profile, first);
  TRY(put_new("cprof_slice", profile.slices, [&](Statement& into, int64_t id, const Slice& r) {
    return into.put(id, bits(r.start_ns), bits(r.duration_ns), ref(r.thread), ref(r.track), must(r.name),
                    must(r.category), int64_t{r.depth}, parents[static_cast<size_t>(id) - first], ref(r.labels),
                    int64_t{r.is_open});
  }));
  return put_new("cprof_mark", profile.marks, [](Statement& into, int64_t id, const Mark& r) {
    return into.put(id, bits(r.time_ns), ref(r.thread), ref(r.track), must(r.name), must(r.category), ref(r.labels));
  });
}

// Where a view shows what has no stack. Written when the first such row comes.
Result<void> Writer::put_unknown() {
  if (has_unknown_) return {};
  has_unknown_ = true;
  TRY(put_unmapped());
  const int64_t kind = code(FrameKind::kUnknown);
  Statement* location = TRY(insert("cprof_location"));
  Statement* site = TRY(insert("stack_profile_callsite"));
  TRY(location->put(kUnknownId, nullptr, int64_t{0}, int64_t{0}, int64_t{0}, int64_t{0}, int64_t{0}, kind,
                    int64_t{0}, int64_t{0}));
  return site->put(kUnknownId, int64_t{0}, nullptr, kUnknownId);
}

// Where a view shows what has no mapping, so that a query that joins mappings does not lose it.
Result<void> Writer::put_unmapped() {
  if (has_unmapped_) return {};
  has_unmapped_ = true;
  Statement* mapping = TRY(insert("stack_profile_mapping"));
  return mapping->put(kUnknownId, std::string_view(), int64_t{0}, int64_t{0}, int64_t{0}, int64_t{0}, profile::kUnknownFrame, int64_t{0},
                      int64_t{0}, int64_t{0}, int64_t{0});
}

}  // namespace cprof::store
