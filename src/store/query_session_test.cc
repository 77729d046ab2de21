// Profiles through SQL: the tables of the trace processor's pprof importer, rule by rule, and what is worked out from
// timed ones. Every number is known from how the profile was made.
#include "store/query_session.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "profile/builder.h"
#include "store/profile_tables.h"
#include "store/schema.h"
#include "store/writer.h"

namespace cprof::store {
namespace {

using profile::ProfileBuilder;

// Rows as "a|b|c\n"; NULL as "-".
class TextSink final : public RowSink {
 public:
  Result<void> begin(std::span<const std::string>) override { return {}; }
  Result<void> row(std::span<const SqlValue> values) override {
    for (size_t i = 0; i < values.size(); ++i) text += (i > 0 ? "|" : "") + std::visit(Show(), values[i]);
    text += "\n";
    return {};
  }
  Result<void> end(bool was_cut) override {
    if (was_cut) text += "cut\n";
    return {};
  }
  std::string text;

 private:
  struct Show {
    std::string operator()(std::monostate) const { return "-"; }
    std::string operator()(int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const { return fmt::format("{:g}", value); }
    std::string operator()(std::string_view value) const { return std::string(value); }
    std::string operator()(const SqlBlob&) const { return "blob"; }
  };
};

class QuerySessionTest : public ::testing::Test {
 protected:
  QuerySessionTest() {
    auto session =
        QuerySession::create([](std::string_view name) { return name == "_Z1fv" ? "f()" : std::string(name); });
    if (!session) ADD_FAILURE() << session.error().message;
    session_ = std::move(*session);
  }
  std::string ask(std::string_view script, const QueryLimits& limits = {}) {
    TextSink sink;
    auto done = session_->run(script, limits, sink);
    return done ? sink.text : "error at " + std::to_string(done.error().offset) + ": " + done.error().message;
  }

  std::unique_ptr<QuerySession> session_;
};

std::string ask_recording(Database& file, const std::string& query) {
  auto statement = file.prepare(query);
  if (!statement) return statement.error().message;
  std::string text;
  for (auto row = statement->step(); row && *row; row = statement->step()) {
    for (int i = 0; i < sqlite3_column_count(sqlite3_next_stmt(file.handle(), nullptr)); ++i) {
      if (i > 0) text += "|";
      if (statement->is_null(i))
        text += "-";
      else if (statement->is_integer(i))
        text += std::to_string(statement->integer(i));
      else if (statement->is_real(i))
        text += fmt::format("{:g}", statement->real(i));
      else
        text += statement->text(i);
    }
    text += "\n";
  }
  return text;
}

std::vector<std::string> sorted(const std::string& rows) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < rows.size(); at = rows.find('\n', at) + 1)
    lines.push_back(rows.substr(at, rows.find('\n', at) - at));
  std::ranges::sort(lines);
  return lines;
}

// As pprof has it: two values a sample; `work` inlined in `main`; an address without a name; equal stacks with labels.
profile::Profile example() {
  ProfileBuilder b;
  auto text = [&](std::string_view t) { return b.intern(t); };
  auto line = [&](std::string_view name, uint32_t number, std::string_view file = "") {
    return profile::Line{
        b.function({.name = text(name), .system_name = text(name), .file = text(file), .start_line = 7}), number, 0};
  };
  auto cpu = b.add_metric("cpu", "nanoseconds"), bytes = b.add_metric("", "");
  auto app = b.mapping(
      {.path = text("/bin/app"), .build_id = text("0123abcd"), .start = 0x1000, .end = 0x9000, .file_offset = 0x200});
  const profile::Line start[] = {line("_start", 0)}, inlined[] = {line("work", 11, "a.cc"), line("main", 22, "a.cc")};
  auto root = b.add_location({.mapping = app, .address = 0x1010}, start);
  auto main = b.add_location({.mapping = app, .address = 0x1020}, inlined);
  auto unnamed = b.add_location({.mapping = app, .address = 0x1030, .file_address = 0x230}, {});
  const profile::LocationId path[] = {root, main}, deeper[] = {root, main, unnamed};
  const profile::Label request[] = {{.key = text("request"), .text = text("get")},
                                    {.key = text("size"), .number = 5, .unit = text("bytes"), .is_number = true}};
  auto labels = b.label_set(request);
  const auto site = b.stack(path), leaf = b.stack(deeper);
  b.add_aggregate({.site = site, .metric = cpu, .value = 10});
  b.add_aggregate({.site = site, .metric = bytes, .value = (int64_t{1} << 53) + 1});
  b.add_aggregate({.site = site, .metric = cpu, .labels = labels, .value = 5});
  b.add_aggregate({.site = leaf, .metric = cpu, .value = 3});
  b.add_aggregate({.metric = cpu, .value = 2});
  return b.take();
}

TEST_F(QuerySessionTest, TablesHaveTheColumnsOfARecording) {
  for (const ColumnTableDef& table : profile_tables()) {
    const TableDef* documented = find_table(table.name);
    if (!documented) continue;
    ASSERT_GE(table.columns.size(), documented->columns.size()) << table.name;
    for (size_t i = 0; i < documented->columns.size(); ++i)
      EXPECT_EQ(table.columns[i].name, documented->columns[i].name) << table.name;
  }
  const std::vector<std::string> tables = session_->tables();
  for (const TableDef& table : all_tables()) {
    if (table.name.starts_with("cprof_") || table.name.starts_with("_")) continue;
    EXPECT_NE(std::ranges::find(tables, table.name), tables.end())
        << table.name << " is in a recording, not in a session";
  }
}

TEST_F(QuerySessionTest, ProfilesAndSamples) {
  session_->add_profile(example(), "x.pb.gz");
  EXPECT_EQ(ask("SELECT * FROM __intrinsic_aggregate_profile"),
            "0|x.pb.gz|pprof cpu|cpu|nanoseconds\n1|x.pb.gz|pprof unknown|unknown|count\n");
  EXPECT_EQ(ask("SELECT id, aggregate_profile_id, callsite_id, value_int, arg_set_id FROM aggregate_sample"),
            "0|0|1|10|-\n1|1|1|9007199254740993|-\n2|0|1|5|0\n3|0|2|3|-\n4|0|3|2|-\n");
  EXPECT_EQ(ask("SELECT typeof(value), value FROM aggregate_sample WHERE id = 3"), "real|3\n");
  EXPECT_EQ(ask("SELECT key, int_value, string_value, display_value, unit FROM args WHERE arg_set_id = 0"),
            "request|-|get|get|\nsize|5|-|5|bytes\n");
  EXPECT_EQ(ask("SELECT extract_arg(0, 'request'), extract_arg(0, 'size'), extract_arg(0, 'none')"), "get|5|-\n");
  EXPECT_EQ(ask("SELECT value FROM sample_labels WHERE key = 'request'"), "get\n");
}

TEST_F(QuerySessionTest, Stacks) {
  session_->add_profile(example(), "x");
  EXPECT_EQ(ask("SELECT id, depth, parent_id, frame_id FROM stack_profile_callsite"),
            "0|0|-|0\n1|1|0|1\n2|2|1|2\n3|0|-|3\n");
  EXPECT_EQ(ask("SELECT id, name, mapping, rel_pc, symbol_set_id FROM stack_profile_frame"),
            "0|_start|0|528|0\n1|work|0|544|1\n2|[unknown]|0|560|-\n3|[unknown]|1|0|-\n");
  EXPECT_EQ(ask("SELECT id, symbol_set_id, name, source_file, line_number, inlined FROM stack_profile_symbol"),
            "0|0|_start|-|7|0\n1|1|work|a.cc|11|1\n2|1|main|a.cc|22|0\n");
  EXPECT_EQ(ask("SELECT id, build_id, exact_offset, start, end, name FROM stack_profile_mapping"),
            "0|0123abcd|512|4096|36864|/bin/app\n1||0|0|0|[unknown]\n");
  EXPECT_EQ(ask("SELECT stack(2), stack(1, ' > '), leaf(2), root(2), stack(3), stack(99), stack(NULL)"),
            "_start;main;work;[app+0x230]|_start > main > work|[app+0x230]|_start|[unknown]|-|-\n");
  EXPECT_EQ(ask("SELECT contains(2, 'work'), contains(0, 'work'), matches(2, 'wo*'), contains(2, 'wo')"), "1|0|1|0\n");
}

TEST_F(QuerySessionTest, TheFlamegraphQueryOfTheUi) {
  session_->add_profile(example(), "x");
  EXPECT_EQ(ask(R"(INCLUDE PERFETTO MODULE callstacks.stack_profile;
WITH ps AS MATERIALIZED (SELECT callsite_id, sum(value) v FROM __intrinsic_aggregate_sample WHERE aggregate_profile_id=0 GROUP BY 1)
SELECT c.id, c.parent_id, c.name, c.mapping_name, c.source_file||':'||c.line_number loc, c.inlined,
       iif(c.is_leaf_function_in_callsite_frame, ifnull(ps.v,0), 0) self
FROM _callstacks_for_stack_profile_samples!(ps) c LEFT JOIN ps USING(callsite_id) ORDER BY c.id)"),
            "0|-|_start|/bin/app|-|0|0\n1|2|work|/bin/app|a.cc:11|1|15\n2|0|main|/bin/app|a.cc:22|0|0\n"
            "3|1|[unknown]|/bin/app|-|-|3\n4|-|[unknown]|[unknown]|-|-|2\n");
}

TEST_F(QuerySessionTest, TreesAndTotals) {
  session_->add_profile(example(), "x");
  const std::string query = "'SELECT callsite_id, value_int FROM aggregate_sample WHERE aggregate_profile_id = 0'";
  EXPECT_EQ(ask("SELECT id, parent_id, name, depth, self, total FROM call_tree(" + query + ")"),
            "0|-|_start|0|0|18\n1|2|work|2|15|18\n2|0|main|1|0|18\n3|1|[app+0x230]|3|3|3\n4|-|[unknown]|0|2|2\n");
  EXPECT_EQ(ask("SELECT name, module, self, total FROM function_totals(" + query + ")"),
            "work|app|15|18\n[app+0x230]|app|3|3\n[unknown]|-|2|2\n_start|app|0|18\nmain|app|0|18\n");
  EXPECT_EQ(ask("SELECT name, self, self_percent, total_percent FROM top_functions WHERE metric = 'cpu' LIMIT 1"),
            "work|15|75|90\n");
  EXPECT_EQ(ask("SELECT value, stack FROM hot_stacks LIMIT 1"), "15|_start;main;work\n");
  EXPECT_EQ(ask("SELECT module, self FROM top_modules WHERE metric = 'cpu'"), "/bin/app|18\n[unknown]|2\n");
  EXPECT_EQ(ask("SELECT * FROM call_tree('SELECT 1')"),
            "error at 0: the query must give callsite_id and a value, not 1 columns");
  EXPECT_EQ(ask("SELECT * FROM call_tree('DELETE FROM thread')").substr(0, 8), "error at");
  EXPECT_EQ(ask("SELECT * FROM call_tree('SELECT 1, 1; SELECT 2')"),
            "error at 0: the query is more than one statement");
}

TEST_F(QuerySessionTest, SeveralProfilesStayApart) {
  session_->add_profile(example(), "x");
  session_->add_profile(example(), "x");
  EXPECT_EQ(ask("SELECT scope, sum(value_int) FROM aggregate_sample s JOIN aggregate_profile p ON p.id = "
                "s.aggregate_profile_id "
                "WHERE sample_type_type = 'cpu' GROUP BY p.id"),
            "x|20\nx (2)|20\n");
  for (const char* table :
       {"stack_profile_callsite", "stack_profile_frame", "stack_profile_symbol", "stack_profile_mapping", "args"})
    EXPECT_EQ(ask(fmt::format("SELECT count(*) = count(DISTINCT id), max(id) = count(*) - 1 FROM {}", table)), "1|1\n")
        << table;
  EXPECT_EQ(ask("SELECT count(*) FROM stack_profile_callsite c JOIN stack_profile_frame f ON f.id = c.frame_id "
                "JOIN stack_profile_mapping m ON m.id = f.mapping"),
            "8\n");
  EXPECT_EQ(ask("SELECT stack(5), stack(6)"), "_start;main;work|_start;main;work;[app+0x230]\n");
}

// Two threads at 1 ms: main runs a, then a > b, waits for a lock from 2 ms on, is woken at 5 ms and runs at 6 ms.
profile::Profile recording() {
  constexpr uint64_t kMs = 1'000'000;
  ProfileBuilder b;
  profile::Profile& p = b.profile();
  p.run.end_ns = 10 * kMs;
  p.run.sampling_interval_ns = kMs;
  p.run.has_switches = p.run.has_off_cpu = true;
  auto clock = b.add_metric("cpu-clock", "nanoseconds", kMs, true);
  b.add_metric("offcpu", "nanoseconds");
  auto process = b.add_process(10, "app");
  auto main = b.add_thread(process, 10, "app"), waker = b.add_thread(process, 11, "waker");
  auto frame = [&](std::string_view name) {
    profile::Line line{b.function({.name = b.intern(name), .system_name = b.intern(name)})};
    return b.named_location({}, profile::FrameKind::kUser, {&line, 1});
  };
  const profile::LocationId a[] = {frame("a")}, ab[] = {a[0], frame("b")};
  b.add_sample({.time_ns = 0, .weight = kMs, .thread = main, .site = b.stack(a), .metric = clock});
  b.add_sample({.time_ns = kMs,
                .weight = kMs,
                .thread = main,
                .site = b.stack(ab),
                .cpu = 1,
                .metric = clock,
                .in_kernel = true});
  b.add_sample({.time_ns = 6 * kMs + kMs / 2,
                .weight = kMs,
                .thread = main,
                .site = b.stack(a),
                .metric = clock,
                .end = profile::StackEnd::kMaxDepth});
  p.on_cpu = {{main, 0, 2 * kMs, 1, false}, {main, 6 * kMs, 7 * kMs, 0, true}};
  p.off_cpu = {{.thread = main,
                .start_ns = 2 * kMs,
                .end_ns = 6 * kMs,
                .woken_ns = 5 * kMs,
                .wait_class = profile::WaitClass::kFutex,
                .site = b.stack(ab),
                .waker = waker}};
  p.tracks = {{.name = b.intern("heap"), .unit = b.intern("bytes"), .process = process},
              {.name = b.intern("frames drawn"), .process = process}};
  p.counters = {{profile::TrackId(uint32_t{0}), kMs, 4.5}};
  p.slices = {{.thread = {},
               .name = b.intern("draw"),
               .start_ns = kMs,
               .duration_ns = 2 * kMs,
               .track = profile::TrackId(uint32_t{1})},
              {.thread = {},
               .name = b.intern("clear"),
               .start_ns = kMs,
               .duration_ns = kMs,
               .depth = 1,
               .track = profile::TrackId(uint32_t{1})}};
  p.marks = {{.thread = main, .name = b.intern("vsync"), .category = b.intern("gpu"), .time_ns = 3 * kMs}};
  p.diagnostics.add("some_loss", Severity::kDataLoss, "what to do", 3, "one");
  return b.take();
}

TEST_F(QuerySessionTest, ThreadsAndSamples) {
  session_->add_profile(recording(), "r");
  EXPECT_EQ(ask("SELECT utid, tid, t.name, p.pid, is_main_thread FROM thread t JOIN process p USING (upid)"),
            "0|10|app|10|1\n1|11|waker|10|0\n");
  EXPECT_EQ(ask("SELECT ts, utid, cpu, cpu_mode, callsite_id, unwind_error, weight FROM perf_sample"),
            "0|0|0|user|0|-|1000000\n1000000|0|1|kernel|1|-|1000000\n6500000|0|0|user|0|max-depth|1000000\n");
  EXPECT_EQ(ask("SELECT p.sample_type_type, callsite_id, value_int FROM aggregate_sample s JOIN aggregate_profile p "
                "ON p.id = s.aggregate_profile_id"),
            "cpu-clock|0|2000000\ncpu-clock|1|1000000\noffcpu|1|4000000\n");
  EXPECT_EQ(ask("INCLUDE PERFETTO MODULE linux.perf.samples; SELECT name, self_count, cumulative_count FROM "
                "linux_perf_samples_summary_tree"),
            "a|2|3\nb|1|1\n");
  EXPECT_EQ(
      ask("INCLUDE PERFETTO MODULE stacks.cpu_profiling; SELECT ts, thread_name FROM cpu_profiling_samples LIMIT 1"),
      "0|app\n");
  EXPECT_EQ(ask("SELECT name, severity, value, example FROM stats"), "some_loss|data_loss|3|one\n");
  EXPECT_EQ(ask("SELECT int_value FROM metadata WHERE name = 'end_ns'"), "10000000\n");
  EXPECT_EQ(ask("SELECT trace_start(), trace_end(), trace_dur()"), "0|10000000|10000000\n");
}

TEST_F(QuerySessionTest, Timeline) {
  session_->add_profile(recording(), "r");
  EXPECT_EQ(ask("SELECT class, ts, dur, waker_utid, leaf(callsite_id) FROM off_cpu"),
            "futex|2000000|3000000|1|b\nsched|5000000|1000000|1|b\n");
  EXPECT_EQ(
      ask("SELECT ts, dur, state, cpu, class FROM thread_state"),
      "0|2000000|Running|1|-\n2000000|3000000|S|-|futex\n5000000|1000000|R|-|sched\n6000000|1000000|Running|0|-\n");
  EXPECT_EQ(ask("SELECT ts, dur, cpu, end_state FROM sched"), "0|2000000|1|S\n6000000|1000000|0|R+\n");
  EXPECT_EQ(ask("SELECT on_cpu_ns, runnable_ns, waiting_ns, samples FROM thread_time"),
            "3000000|1000000|3000000|3\n0|0|0|0\n");
  EXPECT_EQ(ask("SELECT class, count, total_ns FROM waits"), "futex|1|3000000\nsched|1|1000000\n");
  EXPECT_EQ(
      ask("SELECT c.ts, c.value, t.name, t.unit FROM counter c JOIN process_counter_track t ON t.id = c.track_id"),
      "1000000|4.5|heap|bytes\n");
}

TEST_F(QuerySessionTest, SlicesOwnAndDerived) {
  session_->add_profile(recording(), "r");
  EXPECT_EQ(ask("SELECT s.id, ts, dur, s.name, category, depth, s.parent_id, t.name FROM slice s JOIN process_track t "
                "ON t.id = s.track_id"),
            "0|1000000|2000000|draw|-|0|-|frames drawn\n1|1000000|1000000|clear|-|1|0|frames drawn\n");
  EXPECT_EQ(ask("SELECT ts, dur, name, category, depth FROM slice WHERE category = 'gpu'"), "3000000|0|vsync|gpu|0\n");
  EXPECT_EQ(ask("SELECT ts, name, depth, parent_id FROM slice WHERE category = 'function' AND depth = 0"), "0|a|0|-\n");
  EXPECT_EQ(ask("SELECT count(*) FROM slice s JOIN slice p ON p.id = s.parent_id WHERE s.name = 'b' AND p.name = 'a' "
                "AND s.ts >= p.ts AND s.ts + s.dur <= p.ts + p.dur"),
            "1\n");
  EXPECT_EQ(ask("SELECT DISTINCT thread.name FROM slice JOIN thread_track ON thread_track.id = slice.track_id JOIN "
                "thread USING (utid)"),
            "app\n");
  EXPECT_EQ(ask("SELECT a.name FROM slice s JOIN ancestor_slice(s.id) a WHERE s.name = 'clear'"), "draw\n");
  EXPECT_EQ(ask("SELECT d.name FROM slice s JOIN descendant_slice(s.id) d WHERE s.name = 'draw'"), "clear\n");
  EXPECT_EQ(ask("INCLUDE PERFETTO MODULE slices.self_dur; SELECT self_dur FROM slice_self_dur WHERE id = 0"),
            "1000000\n");
}

TEST_F(QuerySessionTest, SlicesOfSeveralProfilesHaveTheirOwnIds) {
  session_->add_profile(recording(), "r");
  session_->add_profile(recording(), "s");
  EXPECT_EQ(ask("SELECT count(*) = count(DISTINCT id), count(*) = 2 * (SELECT count(*) FROM slice WHERE track_id < "
                "(SELECT count(*) / 2 FROM track)) FROM slice"),
            "1|1\n");
  EXPECT_EQ(ask("SELECT count(*) FROM slice s JOIN slice p ON p.id = s.parent_id WHERE s.track_id <> p.track_id"),
            "0\n");
}

// What the same profile gives when it is written as a recording and asked there. The rows for samples without a stack
// and for code without a mapping have other ids; recordings hold no slices that are derived.
TEST_F(QuerySessionTest, ValuesAreThoseOfARecording) {
  const char* kQueries[] = {
      "SELECT upid, pid, name, start_ts, end_ts, cgroup, container FROM process",
      "SELECT utid, tid, name, upid, is_main_thread FROM thread",
      "SELECT ts, dur, cpu, utid, end_state FROM sched",
      "SELECT ts, dur, utid, class, callsite_id, waker_utid FROM off_cpu",
      "SELECT ts, dur, cpu, utid, state, io_wait, class, waker_utid FROM thread_state",
      "SELECT ts, utid, cpu, cpu_mode, callsite_id, unwind_error, metric_id, weight, arg_set_id FROM perf_sample",
      "SELECT ts, value FROM counter",
      "SELECT ts, dur, name, category, depth FROM slice WHERE category IS NULL OR category <> 'function'",
      "SELECT name, rel_pc, symbol_set_id, type FROM stack_profile_frame WHERE name <> '[unknown]'",
      "SELECT symbol_set_id, name, source_file, line_number, inlined FROM stack_profile_symbol",
      "SELECT build_id, exact_offset, start, end, load_bias, name FROM stack_profile_mapping WHERE name <> '[unknown]'",
      "SELECT depth, frame_id FROM stack_profile_callsite WHERE depth > 0",
      "SELECT arg_set_id, key, int_value, string_value, value_type, typeof(display_value), display_value, unit FROM args",
      "SELECT name, sample_type_type, sample_type_unit FROM __intrinsic_aggregate_profile",
      "SELECT aggregate_profile_id, value, value_int, arg_set_id FROM __intrinsic_aggregate_sample",
      "SELECT name, key_type, int_value, str_value FROM metadata WHERE name <> 'default_metric'",
      "SELECT name, severity, value, description, example FROM stats",
  };
  for (auto make : {example, recording}) {
    auto session = QuerySession::create([](std::string_view name) { return std::string(name); });
    ASSERT_TRUE(session);
    session_ = std::move(*session);
    session_->add_profile(make(), "x");
    auto file = Database::open_memory();
    ASSERT_TRUE(file && write_profile(*file, make()));
    for (const char* query : kQueries) EXPECT_EQ(sorted(ask(query)), sorted(ask_recording(*file, query))) << query;
  }
}

TEST_F(QuerySessionTest, EveryModuleCanBeIncluded) {
  session_->add_profile(recording(), "r");
  EXPECT_EQ(ask("INCLUDE PERFETTO MODULE *; INCLUDE PERFETTO MODULE slices.with_context;"), "");
  EXPECT_EQ(ask("INCLUDE PERFETTO MODULE android.startup").substr(0, 55),
            "error at 0: not supported: module android.startup; ther");
  const std::string views = ask("SELECT name FROM sqlite_temp_schema WHERE type = 'view'");
  std::string_view rest = views;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find('\n'));
    EXPECT_EQ(ask(fmt::format("SELECT count(*) >= 0 FROM {}", name)), "1\n") << name;
    rest.remove_prefix(name.size() + 1);
  }
}

TEST_F(QuerySessionTest, FunctionsOfAScript) {
  EXPECT_EQ(
      ask("CREATE PERFETTO FUNCTION plus(x INT, y INT) RETURNS INT AS SELECT $x + $y; SELECT plus(1, plus(2, 3))"),
      "6\n");
  EXPECT_EQ(ask("CREATE PERFETTO FUNCTION f(n INT) RETURNS TABLE(a INT, b INT) AS SELECT column1, column1 * $n FROM "
                "(VALUES (1), (2)); "
                "SELECT * FROM f(10); SELECT count(*) FROM f(1) x, f(2) y"),
            "1|10\n2|20\n4\n");
  EXPECT_EQ(ask("SELECT * FROM f").substr(0, 8), "error at");
  EXPECT_EQ(ask("CREATE PERFETTO FUNCTION g() RETURNS INT AS SELECT nosuch FROM thread"),
            "error at 51: no such column: nosuch");
  EXPECT_EQ(ask("CREATE PERFETTO FUNCTION g(a INT) RETURNS INT AS SELECT $b"), "error at 0: g: no argument '$b'");
  EXPECT_EQ(ask("CREATE PERFETTO FUNCTION h(n INT) RETURNS INT AS SELECT 1; CREATE PERFETTO FUNCTION h(n INT) RETURNS "
                "INT AS SELECT h($n); "
                "SELECT h(1)"),
            "error at 122: h: functions call functions more than 50 deep");
}

TEST_F(QuerySessionTest, ProfilesCannotBeChanged) {
  session_->add_profile(example(), "x");
  for (const char* sql :
       {"DELETE FROM thread", "INSERT INTO thread(tid) VALUES (1)", "UPDATE thread SET tid = 1", "DROP TABLE thread",
        "ATTACH 'x' AS y", "PRAGMA writable_schema = 1", "PRAGMA journal_mode", "BEGIN", "VACUUM", "ANALYZE",
        "CREATE VIRTUAL TABLE x USING fts5(a)", "CREATE TABLE main.x(a)", "CREATE INDEX i ON thread(tid)",
        "SELECT load_extension('x')", "ALTER TABLE thread RENAME TO t", "SAVEPOINT s", "DETACH main"})
    EXPECT_EQ(ask(sql).substr(0, 8), "error at") << sql;
  EXPECT_EQ(
      ask("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2); DELETE FROM t WHERE a = 1; SELECT * FROM t; DROP TABLE t"),
      "2\n");
  EXPECT_EQ(ask("SELECT count(*) FROM stack_profile_frame"), "4\n");
}

TEST_F(QuerySessionTest, LimitsAndInterrupts) {
  const std::string endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT ";
  EXPECT_EQ(ask(endless + "i FROM n", {.rows = 2}), "1\n2\ncut\n");
  EXPECT_EQ(ask("SELECT 1", {.rows = 1}), "1\n") << "just enough is not cut";
  EXPECT_EQ(ask(endless + "sum(i) FROM n", {.seconds = 0.05}),
            "error at 0: stopped after 0.05 s; a longer time limit lets it go on");
  class Stop final : public RowSink {
   public:
    explicit Stop(QuerySession& session) : session_(session) {}
    Result<void> begin(std::span<const std::string>) override { return {}; }
    Result<void> row(std::span<const SqlValue>) override {
      session_.interrupt();
      return {};
    }
    Result<void> end(bool) override { return {}; }

   private:
    QuerySession& session_;
  } sink(*session_);
  auto done = session_->run(endless + "i FROM n", {}, sink);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "interrupted");
  EXPECT_EQ(ask("SELECT 1"), "1\n") << "and the session goes on";
}

TEST_F(QuerySessionTest, PlainFunctions) {
  EXPECT_EQ(ask("SELECT demangle('_Z1fv'), demangle('main'), demangle(NULL)"), "f()|-|-\n");
  EXPECT_EQ(ask("SELECT str_split('a:b:c', ':', 1), str_split('a:b', ':', 2), str_split('a', ':', 0)"), "b|-|a\n");
  EXPECT_EQ(ask("SELECT hash('a') = hash('a'), hash('a') = hash('b')"), "1|0\n");
  EXPECT_EQ(ask("SELECT sum_int(column1) FROM (VALUES (9223372036854775807), (1))"), "9223372036854775807\n");
  EXPECT_EQ(ask("SELECT cast_int!('5') + 1, cast_string!(5) || 'x'"), "6|5x\n");
  EXPECT_EQ(ask("SELECT $x").substr(0, 47), "error at 0: the parameter $x has no value here");
}

TEST_F(QuerySessionTest, IdsAreFoundHoweverTheyAreWritten) {
  session_->add_profile(example(), "x");
  EXPECT_EQ(ask("SELECT count(*) FROM stack_profile_frame WHERE id = '1'"), "1\n");
  EXPECT_EQ(ask("SELECT count(*) FROM stack_profile_frame WHERE id = 1.0"), "1\n");
  EXPECT_EQ(ask("SELECT count(*) FROM stack_profile_frame WHERE id = 1.5 OR id = -1 OR id = 9223372036854775807 OR id "
                "= NULL"),
            "0\n");
  EXPECT_EQ(ask("SELECT count(*) FROM aggregate_sample WHERE callsite_id IN (1, 3)"), "4\n");
  EXPECT_EQ(ask("SELECT count(*) FROM aggregate_sample WHERE arg_set_id IS NULL"), "4\n");
}

}  // namespace
}  // namespace cprof::store
