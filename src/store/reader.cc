// Each table is read in the order of its rows, whose numbers must be 0, 1, 2, ...: so a file in which the same page hangs
// in many places ends at its first repetition. Ids are checked last, all of them, by the model's own check.
#include "store/reader.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>

#include "profile/builder.h"
#include "profile/validate.h"
#include "store/code_names.h"
#include "store/row.h"
#include "store/run_facts.h"
#include "store/sample_chunks.h"
#include "store/schema.h"

namespace cprof::store {
namespace {

using namespace profile;

class Reader {
 public:
  explicit Reader(Database& database) : database_(database) {}

  Result<Profile> run() {
    TRY(guard());
    TRY(check_version());
    TRY(check_tables());
    TRY(read_codes());
    TRY(read_strings());
    TRY(read_run());
    TRY(read_stats());
    TRY(read_tasks());
    TRY(read_code());
    TRY(read_values());
    TRY(read_samples());
    TRY(read_time());
    Profile profile = builder_.take();
    TRY(validate(profile));
    return profile;
  }

 private:
  Profile& p() { return builder_.profile(); }

  Result<void> guard();
  Result<int64_t> single(const std::string& sql);
  Result<void> check_version();
  Result<void> check_tables();
  template <typename OnRow>
  Result<void> each(std::string_view table, OnRow&& on_row);
  template <typename OnRow>
  Result<void> each_numbered(std::string_view table, OnRow&& on_row);
  template <typename Enum>
  Enum code(Row& row, CodeKind kind);

  Result<void> read_codes();
  Result<void> read_strings();
  Result<void> read_run();
  void read_fact(std::string_view name, Row& row);
  Result<void> read_stats();
  Result<void> read_tasks();
  Result<void> read_code();
  Result<void> read_sites();
  Result<void> read_values();
  Result<void> read_samples();
  void read_chunk(Row& row);
  std::vector<std::optional<int64_t>> column_of(Row& row, size_t count);
  Result<void> read_time();
  Result<void> read_off_cpu();
  Result<void> read_lanes();

  Database& database_;
  uint64_t text_left_ = 0;
  ProfileBuilder builder_;
  std::array<std::vector<uint8_t>, static_cast<size_t>(CodeKind::kCount)> codes_;  // of the file -> of the model
  std::vector<Sample> contexts_;
};

Result<int64_t> Reader::single(const std::string& sql) {
  Statement statement = TRY(database_.prepare(sql));
  if (!TRY(statement.step())) return fail("empty");
  return statement.integer(0);
}

// Nothing of the schema may run, and no value can be larger than its file.
Result<void> Reader::guard() {
  constexpr int64_t kLeastBytes = 64 << 10, kMostBytes = 1'000'000'000;
  sqlite3* handle = database_.handle();
  for (int option : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_TRUSTED_SCHEMA})
    sqlite3_db_config(handle, option, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  TRY(database_.execute("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;"));
  const int64_t pages = TRY(single("PRAGMA page_count")), page_bytes = TRY(single("PRAGMA page_size"));
  text_left_ = static_cast<uint64_t>(pages * page_bytes);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, static_cast<int>(std::clamp(pages * page_bytes, kLeastBytes, kMostBytes)));
  return {};
}

Result<void> Reader::check_version() {
  if (TRY(single("PRAGMA application_id")) != kApplicationId) return fail("an SQLite database, but not a recording of cprof");
  const int64_t version = TRY(single("PRAGMA user_version"));
  if (version > kSchemaVersion)
    return fail(fmt::format("a recording of version {}; this cprof reads up to {}: use a newer one", version, kSchemaVersion));
  if (version != kSchemaVersion) return fail(fmt::format("a recording of version {}, which never was", version));
  return {};
}

// A table that is defined in another way could be anything, also something that computes without end.
Result<void> Reader::check_tables() {
  Statement find = TRY(database_.prepare("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?"));
  for (const TableDef& table : all_tables()) {
    if (!table.view.empty()) continue;
    find.bind(1, table.name);
    if (!TRY(find.step())) return fail(fmt::format("the table {} is missing", table.name));
    const std::string wanted = ddl_of(table);
    if (!wanted.starts_with(find.text(0)) || wanted.substr(find.text(0).size(), 2) != ";\n")
      return fail(fmt::format("the table {} is not as cprof makes it", table.name));
    find.reset();
  }
  return {};
}

// on_row(row) takes the columns one after the other.
template <typename OnRow>
Result<void> Reader::each(std::string_view name, OnRow&& on_row) {
  const TableDef& table = *find_table(name);
  Statement statement = TRY(database_.prepare(select_sql(table)));
  Row row(table, statement, text_left_);
  for (uint64_t count = 0;; ++count) {
    auto more = statement.step();
    if (!more) return std::unexpected(in_context(fmt::format("{}[{}]", name, count), more.error()));
    if (!*more) return {};
    row.start(count);
    on_row(row);
    if (row.is_bad()) return fail(row.problem());
  }
}

// on_row(number, row) for each but the one that stands for none.
template <typename OnRow>
Result<void> Reader::each_numbered(std::string_view name, OnRow&& on_row) {
  uint64_t next = 0;
  return each(name, [&](Row& row) {
    const uint64_t id = row.bits();
    if (id == static_cast<uint64_t>(kUnknownId)) return;
    if (id != next++) return row.say(fmt::format("{} follows {}", id, static_cast<int64_t>(next) - 2));
    on_row(id, row);
  });
}

template <typename Enum>
Enum Reader::code(Row& row, CodeKind kind) {
  const auto& known = codes_[static_cast<size_t>(kind)];
  const size_t value = row.index(known.size());
  return static_cast<Enum>(value < known.size() ? known[value] : 0);
}

Result<void> Reader::read_codes() {
  return each_numbered("cprof_enum", [&](uint64_t, Row& row) {
    const std::string type(row.text());
    const auto types = all_code_types();
    auto found = std::ranges::find(types, type, &CodeType::type);
    if (found == types.end()) return row.say("no type that this cprof knows");
    auto& codes = codes_[static_cast<size_t>(found - types.begin())];
    const int64_t number = row.integer();
    if (number != static_cast<int64_t>(codes.size())) return row.say("out of order");
    const std::string_view name = row.text();
    size_t known = 0;
    while (known < found->count && found->name(known) != name) ++known;
    if (known == found->count) return row.say("a code that this cprof does not know");
    codes.push_back(static_cast<uint8_t>(known));
  });
}

Result<void> Reader::read_strings() {
  TRY(each_numbered("cprof_string", [&](uint64_t id, Row& row) {
    if (builder_.intern(row.text()).value != id) row.say("the same text twice, or not the empty one first");
  }));
  return {};
}

void Reader::read_fact(std::string_view name, Row& row) {
  RunInfo& run = p().run;
  const auto facts = all_run_facts();
  auto number = [&] {
    auto value = row.bits();
    row.skip();
    return value;
  };
  auto text = [&] {
    row.skip();
    return row.text();
  };
  if (auto fact = std::ranges::find(facts, name, &RunFact::name); fact != facts.end()) {
    if (fact->text) run.*fact->text = text();
    if (fact->number) run.*fact->number = number();
    if (fact->flag) run.*fact->flag = row.flag();
  } else if (name == kCommentFact) {
    run.comments.emplace_back(text());
  } else if (name == kCpusFact) {
    run.cpus = row.number<uint32_t>();
  } else if (name == kPeriodFact) {
    run.period = row.integer();
  } else if (name == kDefaultMetricFact) {
    run.default_metric = StringId(row.index(p().strings.size()));
  }
}

Result<void> Reader::read_run() {
  TRY(each_numbered("metadata", [&](uint64_t, Row& row) {
    const std::string name(row.text());
    row.skip();
    read_fact(name, row);
  }));
  return each_numbered("cprof_metric", [&](uint64_t, Row& row) {
    Metric metric;
    metric.name = builder_.intern(row.text());
    metric.unit = builder_.intern(row.text());
    metric.period = row.bits();
    metric.is_time = row.flag();
    p().metrics.push_back(metric);
  });
}

Result<void> Reader::read_stats() {
  constexpr std::array<std::string_view, 4> kSeverities = {"info", "notice", "error", "data_loss"};
  std::string last;
  return each("stats", [&](Row& row) {
    const std::string name(row.text());
    if (!last.empty() && name <= last) return row.say("out of order");
    last = name;
    row.skip();
    row.skip();
    const auto severity = std::ranges::find(kSeverities, row.text());
    if (severity == kSeverities.end()) return row.say("no severity");
    row.skip();
    const uint64_t count = row.bits();
    const std::string description(row.text());
    p().diagnostics.add(name, static_cast<Severity>(severity - kSeverities.begin()), description, count, row.text());
  });
}

Result<void> Reader::read_tasks() {
  TRY(each_numbered("process", [&](uint64_t, Row& row) {
    Process r;
    r.pid = row.number<int32_t>();
    r.name = builder_.intern(row.text());
    r.start_ns = row.time();
    r.end_ns = row.time();
    r.cgroup = builder_.intern(row.text());
    row.skip();
    p().processes.push_back(r);
  }));
  return each_numbered("thread", [&](uint64_t, Row& row) {
    Thread r;
    r.tid = row.number<int32_t>();
    r.name = builder_.intern(row.text());
    r.process = row.id<ProcessTag>();
    row.flag();
    r.start_ns = row.time();
    r.end_ns = row.time();
    p().threads.push_back(r);
  });
}

Result<void> Reader::read_code() {
  TRY(each_numbered("stack_profile_mapping", [&](uint64_t, Row& row) {
    Mapping r;
    r.build_id = builder_.intern(row.text());
    r.file_offset = row.bits();
    r.start = row.bits();
    r.end = row.bits();
    r.load_bias = row.bits();
    r.path = builder_.intern(row.text());
    r.has_functions = row.flag();
    r.has_filenames = row.flag();
    r.has_line_numbers = row.flag();
    r.has_inline_frames = row.flag();
    p().mappings.push_back(r);
  }));
  TRY(each_numbered("cprof_function", [&](uint64_t, Row& row) {
    Function r;
    r.name = row.id<StringTag>();
    r.system_name = row.id<StringTag>();
    r.file = row.id<StringTag>();
    r.start_line = row.number<uint32_t>();
    p().functions.push_back(r);
  }));
  TRY(each_numbered("cprof_line", [&](uint64_t, Row& row) {
    Line r;
    r.function = row.id<FunctionTag>();
    r.line = row.number<uint32_t>();
    r.column = row.number<uint32_t>();
    p().lines.push_back(r);
  }));
  TRY(each_numbered("cprof_location", [&](uint64_t, Row& row) {
    Location r;
    r.mapping = row.optional_id<MappingTag>();
    r.address = row.bits();
    r.file_address = row.bits();
    r.function_start = row.bits();
    r.first_line = row.number<uint32_t>();
    r.line_count = row.number<uint16_t>();
    r.kind = code<FrameKind>(row, CodeKind::kFrameKind);
    r.is_return_address = row.flag();
    r.is_folded = row.flag();
    p().locations.push_back(r);
  }));
  return read_sites();
}

Result<void> Reader::read_sites() {
  return each_numbered("stack_profile_callsite", [&](uint64_t, Row& row) {
    CallSite r;
    r.depth = row.number<uint32_t>();
    r.parent = row.optional_id<CallSiteTag>();
    r.location = row.id<LocationTag>();
    p().sites.push_back(r);
  });
}

Result<void> Reader::read_values() {
  TRY(each_numbered("cprof_label", [&](uint64_t, Row& row) {
    Label r;
    r.key = row.id<StringTag>();
    r.text = row.id<StringTag>();
    r.number = row.integer();
    r.unit = row.id<StringTag>();
    r.is_number = row.flag();
    p().labels.push_back(r);
  }));
  TRY(each_numbered("cprof_label_set", [&](uint64_t, Row& row) {
    const auto first = row.number<uint32_t>();
    p().label_sets.emplace_back(first, row.number<uint32_t>());
  }));
  return each_numbered("cprof_aggregate", [&](uint64_t, Row& row) {
    Aggregate r;
    r.site = row.optional_id<CallSiteTag>();
    r.metric = row.id<MetricTag>();
    r.labels = row.optional_id<LabelSetTag>();
    r.value = row.integer();
    r.thread = row.optional_id<ThreadTag>();
    r.end = code<StackEnd>(row, CodeKind::kStackEnd);
    p().aggregates.push_back(r);
  });
}

Result<void> Reader::read_samples() {
  TRY(each_numbered("cprof_sample_context", [&](uint64_t, Row& row) {
    Sample r;
    r.thread = row.id<ThreadTag>();
    r.cpu = row.number<uint32_t>();
    r.in_kernel = row.flag();
    r.end = code<StackEnd>(row, CodeKind::kStackEnd);
    r.metric = row.id<MetricTag>();
    r.labels = row.optional_id<LabelSetTag>();
    contexts_.push_back(r);
  }));
  return each("cprof_sample_chunk", [&](Row& row) {
    const uint64_t id = row.bits();
    if (id != p().samples.size()) return row.say(fmt::format("{} instead of {}", id, p().samples.size()));
    read_chunk(row);
  });
}

// One value stands for all.
std::vector<std::optional<int64_t>> Reader::column_of(Row& row, size_t count) {
  if (!row.is_text()) return std::vector(count, row.optional_integer());
  auto values = unpack(row.text(), count);
  if (!values) row.say(values.error().message);
  else if (values->size() != count) row.say(fmt::format("{} values for {} samples", values->size(), count));
  else return std::move(*values);
  return std::vector<std::optional<int64_t>>(count);
}

void Reader::read_chunk(Row& row) {
  const uint64_t ts = row.bits(), step = row.bits();
  auto jitter = unpack(row.text(), kChunkSamples);
  if (!jitter) return row.say(jitter.error().message);
  const size_t count = jitter->size();
  const auto contexts = column_of(row, count);
  const auto sites = column_of(row, count);
  const auto weights = column_of(row, count);
  if (row.is_bad()) return;
  auto is_row = [](std::optional<int64_t> value, size_t rows) { return value && static_cast<uint64_t>(*value) < rows; };
  for (size_t i = 0; i < count; ++i) {
    const bool is_good = (*jitter)[i] && weights[i] && is_row(contexts[i], contexts_.size()) &&
                         (!sites[i] || is_row(sites[i], p().sites.size()));
    if (!is_good) return row.say(fmt::format("sample {} is out of range", i));
    Sample& sample = p().samples.emplace_back(contexts_[static_cast<size_t>(*contexts[i])]);
    sample.time_ns = ts + step * i + static_cast<uint64_t>(*(*jitter)[i]);
    if (sites[i]) sample.site = CallSiteId(static_cast<uint32_t>(*sites[i]));
    sample.weight = *weights[i];
  }
}

Result<void> Reader::read_time() {
  TRY(each_numbered("cprof_on_cpu", [&](uint64_t, Row& row) {
    SwitchInterval r;
    r.thread = row.id<ThreadTag>();
    r.start_ns = row.bits();
    r.end_ns = r.start_ns + row.bits();
    r.cpu = row.number<uint32_t>();
    r.preempted = row.flag();
    p().on_cpu.push_back(r);
  }));
  TRY(read_off_cpu());
  return read_lanes();
}

Result<void> Reader::read_off_cpu() {
  return each_numbered("cprof_off_cpu", [&](uint64_t, Row& row) {
    OffCpuInterval r;
    r.thread = row.id<ThreadTag>();
    r.start_ns = row.bits();
    r.end_ns = r.start_ns + row.bits();
    if (auto wait = row.optional_integer()) r.woken_ns = r.start_ns + static_cast<uint64_t>(*wait);
    r.wait_class = code<WaitClass>(row, CodeKind::kWaitClass);
    r.site = row.optional_id<CallSiteTag>();
    r.end = code<StackEnd>(row, CodeKind::kStackEnd);
    r.waker = row.optional_id<ThreadTag>();
    r.cpu = row.number<uint32_t>();
    const size_t flags = row.index(16);
    r.is_borrowed = flags & 1;
    r.is_guessed = flags & 2;
    r.is_open = flags & 4;
    r.is_uninterruptible = flags & 8;
    p().off_cpu.push_back(r);
  });
}

Result<void> Reader::read_lanes() {
  TRY(each_numbered("cprof_track", [&](uint64_t, Row& row) {
    Track r;
    r.name = builder_.intern(row.text());
    r.unit = builder_.intern(row.text());
    r.process = row.optional_id<ProcessTag>();
    r.thread = row.optional_id<ThreadTag>();
    p().tracks.push_back(r);
  }));
  TRY(each_numbered("cprof_slice", [&](uint64_t, Row& row) {
    Slice r;
    r.start_ns = row.bits();
    r.duration_ns = row.bits();
    r.thread = row.optional_id<ThreadTag>();
    r.track = row.optional_id<TrackTag>();
    r.name = row.id<StringTag>();
    r.category = row.id<StringTag>();
    r.depth = row.number<uint32_t>();
    row.skip();
    r.labels = row.optional_id<LabelSetTag>();
    r.is_open = row.flag();
    p().slices.push_back(r);
  }));
  TRY(each_numbered("cprof_mark", [&](uint64_t, Row& row) {
    Mark r;
    r.time_ns = row.bits();
    r.thread = row.optional_id<ThreadTag>();
    r.track = row.optional_id<TrackTag>();
    r.name = row.id<StringTag>();
    r.category = row.id<StringTag>();
    r.labels = row.optional_id<LabelSetTag>();
    p().marks.push_back(r);
  }));
  return each_numbered("cprof_counter", [&](uint64_t, Row& row) {
    CounterValue r;
    r.time_ns = row.bits();
    r.track = row.id<TrackTag>();
    r.value = row.real();
    p().counters.push_back(r);
  });
}

}  // namespace

Result<Profile> read_profile(Database& database) {
  return Reader(database).run();
}

}  // namespace cprof::store
