// size-exempt: one table
#include "store/tables.h"

namespace cprof::store {
namespace {

constexpr std::string_view kSlices = R"(SELECT 2 * s.id, s.ts, CASE WHEN s.is_open THEN -1 ELSE s.dur END,
  CASE WHEN s.track_id IS NULL THEN 4 * s.utid ELSE 4 * s.track_id + 1 END,
  (SELECT text FROM cprof_string WHERE id = s.category_id AND text <> ''),
  (SELECT text FROM cprof_string WHERE id = s.name_id), s.depth, 2 * s.parent_id, s.label_set_id
FROM cprof_slice s
UNION ALL
SELECT 2 * m.id + 1, m.ts, 0,
  CASE WHEN m.track_id IS NULL THEN 4 * m.utid ELSE 4 * m.track_id + 1 END,
  (SELECT text FROM cprof_string WHERE id = m.category_id AND text <> ''),
  (SELECT text FROM cprof_string WHERE id = m.name_id), 0, NULL, m.label_set_id
FROM cprof_mark m)";

// A part is there when it lasts; an interval of no length at all keeps its first one.
constexpr std::string_view kOffCpu = R"(SELECT 2 * o.id, o.ts, ifnull(o.wait_dur, o.dur), o.utid,
  (SELECT name FROM cprof_enum WHERE type = 'wait_class' AND code = o.class), o.callsite_id, o.waker_utid
FROM cprof_off_cpu o WHERE o.wait_dur IS NULL OR o.wait_dur > 0 OR o.dur = 0
UNION ALL
SELECT 2 * o.id + 1, o.ts + o.wait_dur, o.dur - o.wait_dur, o.utid, 'sched', o.callsite_id, o.waker_utid
FROM cprof_off_cpu o WHERE o.dur > o.wait_dur)";

constexpr std::string_view kThreadStates = R"(SELECT 3 * id, ts, dur, cpu, utid, 'Running', NULL, NULL, NULL, NULL
FROM cprof_on_cpu
UNION ALL
SELECT 3 * (w.id / 2) + 1 + w.id % 2, w.ts, w.dur, NULL, w.utid,
  CASE WHEN w.class <> 'sched' THEN CASE WHEN o.flags & 8 THEN 'D' ELSE 'S' END WHEN o.wait_dur = 0 THEN 'R+' ELSE 'R' END,
  w.class = 'io', NULL, w.waker_utid, w.class
FROM off_cpu w JOIN cprof_off_cpu o ON o.id = w.id / 2)";

const std::vector<Column>& track_columns() {
  static const std::vector<Column> columns = {{"id", "INTEGER", "number of the track"},
                                              {"name", "TEXT", "its name"},
                                              {"type", "TEXT", "`thread_slice`, `process_slice`, `global_slice` or `counter`"},
                                              {"parent_id", "INTEGER", "always NULL"},
                                              {"utid", "INTEGER", "its thread; NULL none"},
                                              {"upid", "INTEGER", "its process; NULL unknown, or a thread's"},
                                              {"unit", "TEXT", "of counter values"}};
  return columns;
}

void add_track_views(std::vector<TableDef>& list) {
  list.push_back({"track", "Lanes of the timeline: one of each thread, and those that a program or an import named.",
                  track_columns(), R"(SELECT 4 * id, name, 'thread_slice', NULL, id, NULL, NULL FROM thread
UNION ALL
SELECT 4 * id + 1, name, CASE WHEN is_counter THEN 'counter' WHEN utid IS NOT NULL THEN 'thread_slice'
  WHEN upid IS NOT NULL THEN 'process_slice' ELSE 'global_slice' END, NULL, utid, upid, unit
FROM cprof_track)"});
  list.push_back({"thread_track", "Tracks of a thread, counters left out.", track_columns(),
                  "SELECT * FROM track WHERE type = 'thread_slice'"});
  list.push_back({"process_track", "Tracks of a process, counters left out.", track_columns(),
                  "SELECT * FROM track WHERE type = 'process_slice'"});
  list.push_back({"counter_track", "Tracks of counter values.", track_columns(), "SELECT * FROM track WHERE type = 'counter'"});
  list.push_back({"thread_counter_track", "Those of a thread.", track_columns(),
                  "SELECT * FROM track WHERE type = 'counter' AND utid IS NOT NULL"});
  list.push_back({"process_counter_track", "Those of a process.", track_columns(),
                  "SELECT * FROM track WHERE type = 'counter' AND utid IS NULL AND upid IS NOT NULL"});
}

void add_event_views(std::vector<TableDef>& list) {
  list.push_back({"slice", "Named spans and, with a duration of 0, instants that a program or an import gave.",
                  {{"id", "INTEGER", "row"},
                   {"ts", "INTEGER", "from"},
                   {"dur", "INTEGER", "how long; -1: its end was never told"},
                   {"track_id", "INTEGER", "in track"},
                   {"category", "TEXT", "NULL none"},
                   {"name", "TEXT", "its name"},
                   {"depth", "INTEGER", "0 outermost"},
                   {"parent_id", "INTEGER", "the slice around it; NULL none"},
                   {"arg_set_id", "INTEGER", "its arguments, in args; NULL none"}},
                  kSlices});
  list.push_back({"counter", "Values of counters.",
                  {{"id", "INTEGER", "row"},
                   {"ts", "INTEGER", "when"},
                   {"track_id", "INTEGER", "in counter_track"},
                   {"value", "REAL", "the value"}},
                  "SELECT id, ts, 4 * track_id + 1, value FROM cprof_counter"});
}

void add_state_views(std::vector<TableDef>& list) {
  list.push_back({"off_cpu", "When threads were off the CPU: a row while one waits, another while it is runnable.",
                  {{"id", "INTEGER", "row; that of the runnable part is one more than that of its wait"},
                   {"ts", "INTEGER", "from"},
                   {"dur", "INTEGER", "how long"},
                   {"utid", "INTEGER", "the thread"},
                   {"class", "TEXT", "`futex`, `lock`, `poll`, `sleep`, `io`, `network`, `memory`, `sched` or `other`"},
                   {"callsite_id", "INTEGER", "where it left the CPU; NULL unknown"},
                   {"waker_utid", "INTEGER", "who woke it; NULL: an interrupt, or unknown"}},
                  kOffCpu});
  list.push_back({"sched", "When threads were on a CPU.",
                  {{"id", "INTEGER", "row"},
                   {"ts", "INTEGER", "from"},
                   {"dur", "INTEGER", "how long"},
                   {"cpu", "INTEGER", "where"},
                   {"utid", "INTEGER", "the thread"},
                   {"end_state", "TEXT", "`R+`: it was preempted, `S`: it left by itself"}},
                  "SELECT id, ts, dur, cpu, utid, CASE WHEN preempted THEN 'R+' ELSE 'S' END FROM cprof_on_cpu"});
  list.push_back({"thread_state", "What threads did: on a CPU, runnable, or waiting.",
                  {{"id", "INTEGER", "row"},
                   {"ts", "INTEGER", "from"},
                   {"dur", "INTEGER", "how long"},
                   {"cpu", "INTEGER", "where it ran; NULL when it did not"},
                   {"utid", "INTEGER", "the thread"},
                   {"state", "TEXT", "`Running`, `D` (waiting, where no signal ends it: by recordings of the bpf backend), `S` (waiting else), `R` (runnable), `R+` (preempted)"},
                   {"io_wait", "INTEGER", "1: it waited for io"},
                   {"blocked_function", "TEXT", "always NULL"},
                   {"waker_utid", "INTEGER", "who woke it; NULL unknown"},
                   {"class", "TEXT", "as in off_cpu; NULL when it ran; ours"}},
                  kThreadStates});
  list.push_back({"trace_bounds", "When recording began and ended; one row.",
                  {{"start_ts", "INTEGER", "from"}, {"end_ts", "INTEGER", "to"}},
                  R"(SELECT (SELECT int_value FROM metadata WHERE name = 'start_ns'),
  (SELECT int_value FROM metadata WHERE name = 'end_ns'))"});
}

}  // namespace

void add_time_views(std::vector<TableDef>& list) {
  add_track_views(list);
  add_event_views(list);
  add_state_views(list);
}

std::vector<TableDef> make_tables() {
  std::vector<TableDef> list;
  add_stored_tables(list);
  add_code_views(list);
  add_time_views(list);
  return list;
}

}  // namespace cprof::store
