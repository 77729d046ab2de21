#include <gtest/gtest.h>
#include <sqlite3.h>

#include "profile/validate.h"
#include "store/full_profile_for_tests.h"
#include "store/profile_text_for_tests.h"
#include "store/reader.h"
#include "store/row.h"
#include "store/schema.h"
#include "store/writer.h"

namespace cprof::store {
namespace {

using namespace testing;

Database stored(const Profile& profile) {
  auto database = Database::open_memory();
  EXPECT_TRUE(database);
  auto written = write_profile(*database, profile);
  EXPECT_TRUE(written) << (written ? "" : written.error().message);
  return std::move(*database);
}

Database full_recording() { return stored(FullProfile().builder.take()); }

// All rows, values by '|', rows by newline.
std::string rows_of(Database& database, const std::string& sql) {
  auto statement = database.prepare(sql);
  if (!statement) return "error: " + statement.error().message;
  std::string text;
  auto* raw = [&] {
    sqlite3_stmt* next = sqlite3_next_stmt(database.handle(), nullptr);
    while (next && sql != sqlite3_sql(next)) next = sqlite3_next_stmt(database.handle(), next);
    return next;
  }();
  for (auto more = statement->step();; more = statement->step()) {
    if (!more) return "error: " + more.error().message;
    if (!*more) return text;
    for (int i = 0; i < sqlite3_column_count(raw); ++i)
      text += (i ? "|" : "") + (statement->is_null(i) ? std::string("-") : std::string(statement->text(i)));
    text += '\n';
  }
}

TEST(Store, AProfileComesBackAsItWas) {
  const Profile profile = FullProfile().builder.take();
  ASSERT_TRUE(profile::validate(profile));
  Database database = stored(profile);
  auto back = read_profile(database);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(text_of(*back), text_of(profile));
}

TEST(Store, AnEmptyProfileComesBack) {
  const Profile profile;
  Database database = stored(profile);
  auto back = read_profile(database);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(text_of(*back), text_of(profile));
}

// What a .part file goes through: rows come in pieces, tasks and sums change meanwhile.
TEST(Store, PiecesMakeTheWhole) {
  FullProfile full;
  auto database = Database::open_memory();
  auto writer = Writer::create(*database);
  ASSERT_TRUE(writer);
  Profile& p = full.builder.profile();
  ASSERT_TRUE(writer->append(p));
  for (uint64_t i = 0; i < 300; ++i)
    full.builder.add_sample({.time_ns = kStart + 700 * kMs + i, .thread = full.main, .site = full.stack, .metric = full.clock});
  full.builder.add_aggregate({.metric = full.space, .value = -2});
  p.processes[full.app.index()].name = full.builder.intern("renamed");
  p.threads[full.main.index()].end_ns = kStart + 800 * kMs;
  p.diagnostics.add("lost_samples", Severity::kDataLoss, "", 4);
  p.run.end_ns += 5;
  ASSERT_TRUE(writer->append(p));
  ASSERT_TRUE(writer->append(p));
  auto back = read_profile(*database);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(text_of(*back), text_of(full.builder.take()));
}

TEST(Store, TimesFarApartAreKept) {
  FullProfile full;
  auto& samples = full.builder.profile().samples;
  samples.clear();
  for (uint64_t time : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 62, uint64_t{1} << 63, ~uint64_t{0}})
    samples.push_back({.time_ns = time, .weight = std::numeric_limits<int64_t>::min(), .thread = full.main, .metric = full.clock});
  const Profile profile = full.builder.take();
  Database database = stored(profile);
  auto back = read_profile(database);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(text_of(*back), text_of(profile));
}

// --- what SQL sees ---

TEST(Views, EveryColumnThatIsPromisedIsThere) {
  Database database = full_recording();
  for (const TableDef& table : all_tables()) {
    std::string columns;
    for (const Column& column : table.columns) columns += (columns.empty() ? "" : ", ") + std::string(column.name);
    auto rows = rows_of(database, "SELECT " + columns + " FROM " + std::string(table.name));
    EXPECT_FALSE(rows.starts_with("error")) << table.name << ": " << rows;
    EXPECT_FALSE(rows.empty()) << table.name;
    EXPECT_FALSE(table.meaning.empty());
  }
}

TEST(Views, SamplesAreUnpacked) {
  const Profile profile = FullProfile().builder.take();
  Database database = stored(profile);
  std::string expected;
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const Sample& s = profile.samples[i];
    expected += fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}\n", i, s.time_ns, s.thread.value, s.cpu, s.in_kernel ? "kernel" : "user",
                            s.site.valid() ? std::to_string(s.site.value) : "-",
                            s.end == StackEnd::kComplete ? "-" : name_of(s.end), s.metric.value, s.weight,
                            s.labels.valid() ? "0" : "-");
  }
  EXPECT_EQ(rows_of(database, "SELECT * FROM perf_sample ORDER BY id"), expected);
}

TEST(Views, TasksAndCode) {
  Database database = full_recording();
  EXPECT_EQ(rows_of(database, "SELECT upid, pid, name, start_ts, end_ts, cgroup, container FROM process"),
            "0|10|app|5000000000|-|/lxc.payload.web/init.scope|web\n1|20|" + std::string("to\0ol\xff", 6) + "|5001000000|5500000000||\n");
  EXPECT_EQ(rows_of(database, "SELECT utid, tid, upid, is_main_thread, start_ts, end_ts FROM thread"),
            "0|10|0|1|5000000000|-\n1|11|0|0|5000000002|5400000000\n2|20|1|1|-|-\n");
  EXPECT_EQ(rows_of(database, "SELECT id, name, mapping, rel_pc, symbol_set_id, type FROM stack_profile_frame"),
            "0|main|0|4112|0|user\n1|a|0|4128|1|user\n2|do_syscall|1|256|2|kernel\n"
            "3|[unknown]|4294967295|3735928559|-|jit\n4294967295|[unknown]|4294967295|0|-|unknown\n");
  EXPECT_EQ(rows_of(database, "SELECT name, source_file, line_number, inlined FROM stack_profile_symbol WHERE symbol_set_id = 1"),
            "a|a.cc|3|1\nb|b.cc|7|1\nc|c.cc|9|0\n");
  EXPECT_EQ(rows_of(database, "SELECT name, source_file, line_number, inlined FROM stack_profile_symbol WHERE symbol_set_id = 2"),
            "do_syscall|-|-|0\n");
  EXPECT_EQ(rows_of(database, "SELECT build_id, exact_offset, start_offset, start, name FROM stack_profile_mapping"),
            "00aabb|4096|0|4194304|/usr/bin/app\n|0|0|-2130706432|[kernel]\n|0|0|0|[unknown]\n");
  EXPECT_EQ(rows_of(database, "SELECT count(*) FROM stack_profile_frame f JOIN stack_profile_mapping m ON m.id = f.mapping"), "5\n")
      << "no frame is lost to a join";
}

TEST(Views, ValuesByStack) {
  Database database = full_recording();
  EXPECT_EQ(rows_of(database, "SELECT id, scope, name, sample_type_type, sample_type_unit FROM aggregate_profile"),
            "0|in.pb.gz|pprof cpu-clock|cpu-clock|nanoseconds\n1|in.pb.gz|pprof offcpu|offcpu|nanoseconds\n"
            "2|in.pb.gz|pprof unknown|unknown|count\n");
  // 2^53 + 1 is exact in value_int; a sum below 64 bits does not end the query.
  EXPECT_EQ(rows_of(database, "SELECT callsite_id, value_int, arg_set_id FROM aggregate_sample WHERE aggregate_profile_id = 2"),
            "1|9007199254740993|0\n4294967295|-9.22337203685478e+18|-\n");
  EXPECT_EQ(rows_of(database, "SELECT sum(value_int) FROM aggregate_sample WHERE aggregate_profile_id = 0"), "602000000\n");
  EXPECT_EQ(rows_of(database, "SELECT callsite_id, value_int FROM aggregate_sample WHERE aggregate_profile_id = 1"),
            "1|2000000\n3|4000000\n4294967295|1000000\n");
  EXPECT_EQ(rows_of(database, "SELECT arg_set_id, key, int_value, string_value, value_type, unit FROM args"),
            "0|request|-|x=1|string|\n0|size|-7|-|int|bytes\n");
}

TEST(Views, WhatThreadsDid) {
  Database database = full_recording();
  EXPECT_EQ(rows_of(database, "SELECT id, ts, dur, utid, class, callsite_id, waker_utid FROM off_cpu ORDER BY id"),
            "0|5005000000|3000000|0|io|3|1\n1|5008000000|1000000|0|sched|3|1\n3|5010000000|1000000|0|sched|-|-\n"
            "4|5000000000|2000000|1|futex|1|-\n");
  EXPECT_EQ(rows_of(database, "SELECT ts, dur, cpu, utid, end_state FROM sched"), "5000000000|5000000|3|0|R+\n5009000000|0|2|0|S\n");
  EXPECT_EQ(rows_of(database, "SELECT ts, dur, state, io_wait, waker_utid FROM thread_state WHERE utid = 0 ORDER BY ts, state"),
            "5000000000|5000000|Running|-|-\n5005000000|3000000|S|1|1\n5008000000|1000000|R|0|1\n"
            "5009000000|0|Running|-|-\n5010000000|1000000|R+|0|-\n");
  EXPECT_EQ(rows_of(database, "SELECT state FROM thread_state WHERE utid = 1"), "D\n");
  EXPECT_EQ(rows_of(database, "SELECT count(*) = count(DISTINCT id) FROM thread_state"), "1\n");
  EXPECT_EQ(rows_of(database, "SELECT start_ts, end_ts FROM trace_bounds"), "5000000000|5900000000\n");
}

TEST(Views, SlicesAndCounters) {
  Database database = full_recording();
  EXPECT_EQ(rows_of(database, "SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id FROM slice ORDER BY id"),
            "0|5001000000|1000000|0|io|inner|1|2|0\n1|5000000003|0|4|-|inner|0|-|0\n2|5000000000|5000000|0|-|outer|0|-|-\n"
            "3|5000000004|0|1|io|outer|0|-|-\n4|5000000000|-1|1|-|outer|0|-|-\n");
  EXPECT_EQ(rows_of(database, "SELECT s.name, t.name FROM slice s JOIN thread_track k ON k.id = s.track_id JOIN thread t USING (utid) "
                              "WHERE s.dur > 0 ORDER BY s.ts"),
            "outer|app\ninner|app\n");
  EXPECT_EQ(rows_of(database, "SELECT id, name, unit, utid FROM thread_counter_track"), "5|heap|bytes|0\n");
  EXPECT_EQ(rows_of(database, "SELECT id, name, upid FROM process_track"), "1|requests|0\n");
  EXPECT_EQ(rows_of(database, "SELECT id, name, upid FROM process_counter_track"), "9|rss|1\n");
  EXPECT_EQ(rows_of(database, "SELECT track_id, value FROM counter"), "5|0.1\n5|-1.0e+300\n9|7.0\n");
}

TEST(Views, StatsAndMetadata) {
  Database database = full_recording();
  EXPECT_EQ(rows_of(database, "SELECT name, severity, source, value, description, example FROM stats"),
            "a_note|info|trace|0|nothing|\nlost_samples|data_loss|trace|3|samples lost; lower -F|cpu 1\n");
  EXPECT_EQ(rows_of(database, "SELECT str_value FROM metadata WHERE name = 'comment'"), "first\n\nthird\n");
  EXPECT_EQ(rows_of(database, "SELECT int_value FROM metadata WHERE name = 'bytes_read'"), "-1\n");
}

// --- what is not a recording ---

std::string error_after(const std::string& damage) {
  Database database = full_recording();
  auto done = database.execute(damage);
  EXPECT_TRUE(done) << damage << ": " << (done ? "" : done.error().message);
  auto read = read_profile(database);
  return read ? "read" : read.error().message;
}

TEST(Hostile, AnotherKindOfDatabase) {
  EXPECT_EQ(error_after("PRAGMA application_id = 7"), "an SQLite database, but not a recording of cprof");
  EXPECT_EQ(error_after("PRAGMA user_version = 2"), "a recording of version 2; this cprof reads up to 1: use a newer one");
  EXPECT_EQ(error_after("PRAGMA user_version = 0"), "a recording of version 0, which never was");
}

TEST(Hostile, TablesThatAreOtherwiseDefined) {
  EXPECT_EQ(error_after("DROP TABLE cprof_function"), "the table cprof_function is missing");
  EXPECT_EQ(error_after("DROP TABLE cprof_string; CREATE VIEW cprof_string AS SELECT 0 id, '' text"), "the table cprof_string is missing");
  EXPECT_EQ(error_after("ALTER TABLE cprof_metric ADD COLUMN more"), "the table cprof_metric is not as cprof makes it");
}

// SQLite's words quote the file.
TEST(Hostile, NamesOfTheFileDoNotBreakTheLine) {
  Database database = full_recording();
  EXPECT_EQ(rows_of(database, "SELECT 1 FROM \"a\nb\x01\""), "error: no such table: a b ");
}

TEST(Hostile, ValuesThatCannotBe) {
  EXPECT_EQ(error_after("UPDATE process SET pid = 'x' WHERE id = 1"), "process[1]: pid: not a whole number");
  EXPECT_EQ(error_after("UPDATE process SET pid = 4294967296 WHERE id = 0"), "process[0]: pid: 4294967296 is out of range");
  EXPECT_EQ(error_after("UPDATE thread SET upid = NULL"), "thread[0]: upid: not a whole number");
  EXPECT_EQ(error_after("UPDATE thread SET name = 5.5, upid = 7 WHERE id = 2"), "threads[2]: process 7 of 2");
  EXPECT_EQ(error_after("UPDATE cprof_location SET kind = 9 WHERE id = 1"), "cprof_location[1]: kind: 9 is out of range");
  EXPECT_EQ(error_after("UPDATE cprof_location SET line_count = 60000 WHERE id = 1"), "locations[1]: lines out of range");
  EXPECT_EQ(error_after("UPDATE stack_profile_callsite SET parent_id = 1 WHERE id = 0"), "sites[0]: parent 1 does not come before it");
  EXPECT_EQ(error_after("UPDATE cprof_function SET name_id = 99999 WHERE id = 0"), "functions[0]: name 99999 of 36");
  EXPECT_EQ(error_after("DELETE FROM cprof_line WHERE id = 1"), "cprof_line[1]: id: 2 follows 0");
  EXPECT_EQ(error_after("UPDATE cprof_string SET text = x'00' WHERE id = 3"), "cprof_string[3]: text: not a text");
  EXPECT_EQ(error_after("UPDATE stats SET severity = 'bad'"), "stats[0]: severity: no severity");
  EXPECT_EQ(error_after("UPDATE cprof_enum SET name = 'later' WHERE id = 4"), "cprof_enum[4]: name: a code that this cprof does not know");
}

// Rows of a file may share their overflow pages, by which a small file would have texts without end.
TEST(Hostile, MoreTextThanTheFileHas) {
  Database database = full_recording();
  const TableDef& table = *find_table("metadata");
  auto statement = database.prepare("SELECT 'metadata', 'twelve bytes'");
  ASSERT_TRUE(statement && statement->step());
  uint64_t left = 15;
  Row row(table, *statement, left);
  row.start(3);
  EXPECT_EQ(row.text(), "metadata");
  EXPECT_EQ(row.text(), "");
  EXPECT_EQ(row.problem(), "metadata[3]: name: the texts are longer than the file");
}

TEST(Hostile, ChunksThatCannotBe) {
  EXPECT_EQ(error_after("UPDATE cprof_sample_chunk SET jitter = '[1,2' WHERE id = 0"),
            "cprof_sample_chunk[0]: jitter: not an array of whole numbers");
  EXPECT_EQ(error_after("UPDATE cprof_sample_chunk SET jitter = '[0,0]' WHERE id = 256"),
            "cprof_sample_chunk[1]: context_id: an array of more than 2 numbers");
  EXPECT_EQ(error_after("UPDATE cprof_sample_chunk SET callsite_id = '[1]' WHERE id = 0"),
            "cprof_sample_chunk[0]: callsite_id: 1 values for 256 samples");
  EXPECT_EQ(error_after("UPDATE cprof_sample_chunk SET callsite_id = 900 WHERE id = 0"),
            "cprof_sample_chunk[0]: weight: sample 0 is out of range");
  EXPECT_EQ(error_after("UPDATE cprof_sample_chunk SET weight = NULL WHERE id = 0"),
            "cprof_sample_chunk[0]: weight: sample 0 is out of range");
  EXPECT_EQ(error_after("UPDATE cprof_sample_chunk SET id = 9999 WHERE id = 0"), "cprof_sample_chunk[0]: id: 256 instead of 0");
}

}  // namespace
}  // namespace cprof::store
