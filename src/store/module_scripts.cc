// Our own wording of what the trace processor's modules of these names give; where one needs more than SQL it stands on
// the tables of stack_tables.h.
#include "store/module_scripts.h"

namespace cprof::store {

const std::string_view kStackProfileScript = R"sql(
CREATE PERFETTO VIEW _callstack_spc_forest AS
SELECT n.id, n.parent_id,
       coalesce(demangle(coalesce(s.name, f.name)), s.name, f.name) AS name,
       f.mapping AS mapping_id, s.source_file, s.line_number, 0 AS column_number, s.inlined, n.callsite_id,
       n.is_leaf_function_in_callsite_frame
FROM _callstack_forest n
JOIN stack_profile_frame f ON f.id = n.frame_id
LEFT JOIN stack_profile_symbol s ON s.id = n.symbol_id;

CREATE PERFETTO MACRO _callstacks_for_stack_profile_samples(samples TableOrSubquery) RETURNS TableOrSubquery AS (
  WITH RECURSIVE _reached(id) AS (
    SELECT leaf.id FROM $samples AS given JOIN _callstack_forest AS leaf ON leaf.callsite_id = given.callsite_id
    WHERE leaf.is_leaf_function_in_callsite_frame
    UNION
    SELECT below.parent_id FROM _reached JOIN _callstack_forest AS below ON below.id = _reached.id
    WHERE below.parent_id IS NOT NULL)
  SELECT f.id, f.parent_id, f.callsite_id, f.name, m.name AS mapping_name, f.source_file, f.line_number, f.inlined,
         f.is_leaf_function_in_callsite_frame
  FROM _reached JOIN _callstack_spc_forest AS f ON f.id = _reached.id
  JOIN stack_profile_mapping AS m ON m.id = f.mapping_id
);

CREATE PERFETTO MACRO _callstacks_for_callsites_weighted(samples TableOrSubquery) RETURNS TableOrSubquery AS (
  WITH _weights AS MATERIALIZED (SELECT callsite_id, sum(value) AS value FROM $samples GROUP BY callsite_id)
  SELECT c.id, c.parent_id, c.name, c.mapping_name, c.source_file, c.line_number,
         iif(c.is_leaf_function_in_callsite_frame, ifnull(w.value, 0), 0) AS self_value
  FROM _callstacks_for_stack_profile_samples!(_weights) AS c LEFT JOIN _weights AS w ON w.callsite_id = c.callsite_id
);

CREATE PERFETTO MACRO _callstacks_for_callsites(samples TableOrSubquery) RETURNS TableOrSubquery AS (
  SELECT id, parent_id, name, mapping_name, source_file, line_number, self_value AS self_count
  FROM _callstacks_for_callsites_weighted!((SELECT callsite_id, 1 AS value FROM $samples))
);
)sql";

const std::string_view kHierarchyScript = R"sql(
CREATE PERFETTO MACRO _tree_reachable_ancestors_or_self(tree TableOrSubquery, nodes TableOrSubquery)
RETURNS TableOrSubquery AS (
  WITH RECURSIVE _reached(id) AS (
    SELECT id FROM $nodes
    UNION
    SELECT below.parent_id FROM _reached JOIN $tree AS below ON below.id = _reached.id WHERE below.parent_id IS NOT NULL)
  SELECT node.id, node.parent_id FROM _reached JOIN $tree AS node ON node.id = _reached.id
);
)sql";

const std::string_view kPerfSamplesScript = R"sql(
CREATE PERFETTO VIEW linux_perf_samples_summary_tree AS
SELECT id, parent_id, ifnull(demangle(name), name) AS name, mapping_name, source_file, line_number, self AS self_count,
       total AS cumulative_count
FROM call_tree('SELECT callsite_id, 1 FROM perf_sample WHERE callsite_id IS NOT NULL');
)sql";

const std::string_view kCpuProfilingScript = R"sql(
CREATE PERFETTO VIEW cpu_profiling_samples AS
SELECT s.id, s.ts, s.utid, t.tid, t.name AS thread_name, s.cpu AS ucpu, s.cpu, s.callsite_id
FROM perf_sample s LEFT JOIN thread t ON t.id = s.utid;
CREATE PERFETTO VIEW cpu_profiling_summary_tree AS SELECT * FROM linux_perf_samples_summary_tree;
)sql";

const std::string_view kSchedStatesScript = R"sql(
CREATE PERFETTO FUNCTION sched_state_to_human_readable_string(short_name STRING) RETURNS STRING AS
SELECT CASE $short_name WHEN 'R' THEN 'Runnable' WHEN 'R+' THEN 'Runnable (Preempted)' WHEN 'S' THEN 'Sleeping'
  ELSE $short_name END;
)sql";

const std::string_view kTimeInStateScript = R"sql(
CREATE PERFETTO VIEW sched_time_in_state_for_thread AS
SELECT utid, sum(sum(dur)) OVER (PARTITION BY utid) AS total_runtime, state, sum(dur) AS time_in_state,
       sum(dur) * 100 / sum(sum(dur)) OVER (PARTITION BY utid) AS percentage_in_state
FROM thread_state GROUP BY utid, state;
CREATE PERFETTO VIEW sched_percentage_of_time_in_state AS
SELECT utid, max(percentage_in_state) FILTER (WHERE state = 'Running') AS running,
       max(percentage_in_state) FILTER (WHERE state = 'R') AS runnable,
       max(percentage_in_state) FILTER (WHERE state = 'R+') AS runnable_preempted,
       max(percentage_in_state) FILTER (WHERE state = 'S') AS sleeping,
       max(percentage_in_state) FILTER (WHERE state = 'D') AS uninterruptible_sleep,
       max(percentage_in_state) FILTER (WHERE state NOT IN ('Running', 'R', 'R+', 'S', 'D')) AS other
FROM sched_time_in_state_for_thread GROUP BY utid;
)sql";

const std::string_view kSchedContextScript = R"sql(
CREATE PERFETTO VIEW sched_with_thread_process AS
SELECT s.id, s.ts, s.dur, s.utid, t.name AS thread_name, t.upid, p.name AS process_name, s.cpu, s.end_state, s.priority
FROM sched s JOIN thread t ON t.id = s.utid LEFT JOIN process p ON p.id = t.upid;
)sql";

const std::string_view kSliceHierarchyScript = R"sql(
CREATE PERFETTO FUNCTION _slice_ancestor_and_self(slice_id LONG)
RETURNS TABLE(id LONG, ts TIMESTAMP, dur LONG, track_id LONG, category STRING, name STRING, depth LONG, parent_id LONG,
              arg_set_id LONG) AS
SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id FROM slice WHERE id = $slice_id
UNION ALL SELECT * FROM ancestor_slice($slice_id);
CREATE PERFETTO FUNCTION _slice_descendant_and_self(slice_id LONG)
RETURNS TABLE(id LONG, ts TIMESTAMP, dur LONG, track_id LONG, category STRING, name STRING, depth LONG, parent_id LONG,
              arg_set_id LONG) AS
SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id FROM slice WHERE id = $slice_id
UNION ALL SELECT * FROM descendant_slice($slice_id);
)sql";

const std::string_view kSelfDurationScript = R"sql(
CREATE PERFETTO VIEW slice_self_dur AS
SELECT s.id, s.dur - ifnull(inside.dur, 0) AS self_dur
FROM slice s
LEFT JOIN (SELECT parent_id, sum(dur) AS dur FROM slice WHERE parent_id IS NOT NULL GROUP BY parent_id) inside
  ON inside.parent_id = s.id;
)sql";

const std::string_view kSliceContextScript = R"sql(
CREATE PERFETTO VIEW thread_slice AS
SELECT s.id, s.ts, s.dur, s.category, s.name, s.track_id, k.name AS track_name, t.name AS thread_name, t.utid, t.tid,
       t.is_main_thread, p.name AS process_name, p.upid, p.pid, s.depth, s.parent_id, s.arg_set_id, s.thread_ts, s.thread_dur
FROM slice s JOIN thread_track k ON k.id = s.track_id JOIN thread t ON t.id = k.utid LEFT JOIN process p ON p.id = t.upid;
CREATE PERFETTO VIEW process_slice AS
SELECT s.id, s.ts, s.dur, s.category, s.name, s.track_id, k.name AS track_name, p.name AS process_name, p.upid, p.pid,
       s.depth, s.parent_id, s.arg_set_id, s.thread_ts, s.thread_dur
FROM slice s JOIN process_track k ON k.id = s.track_id JOIN process p ON p.id = k.upid;
CREATE PERFETTO VIEW thread_or_process_slice AS
SELECT id, ts, dur, category, name, track_id, track_name, thread_name, utid, tid, process_name, upid, pid, depth, parent_id,
       arg_set_id FROM thread_slice
UNION ALL
SELECT id, ts, dur, category, name, track_id, track_name, NULL, NULL, NULL, process_name, upid, pid, depth, parent_id,
       arg_set_id FROM process_slice;
)sql";

const std::string_view kTimeConversionScript = R"sql(
CREATE PERFETTO FUNCTION time_from_ns(nanos LONG) RETURNS TIMESTAMP AS SELECT $nanos;
CREATE PERFETTO FUNCTION time_from_us(micros LONG) RETURNS TIMESTAMP AS SELECT $micros * 1000;
CREATE PERFETTO FUNCTION time_from_ms(millis LONG) RETURNS TIMESTAMP AS SELECT $millis * 1000000;
CREATE PERFETTO FUNCTION time_from_s(seconds LONG) RETURNS TIMESTAMP AS SELECT $seconds * 1000000000;
CREATE PERFETTO FUNCTION time_from_min(minutes LONG) RETURNS TIMESTAMP AS SELECT $minutes * 60000000000;
CREATE PERFETTO FUNCTION time_from_hours(hours LONG) RETURNS TIMESTAMP AS SELECT $hours * 3600000000000;
CREATE PERFETTO FUNCTION time_from_days(days LONG) RETURNS TIMESTAMP AS SELECT $days * 86400000000000;
CREATE PERFETTO FUNCTION time_to_ns(nanos LONG) RETURNS LONG AS SELECT $nanos;
CREATE PERFETTO FUNCTION time_to_us(nanos LONG) RETURNS LONG AS SELECT $nanos / 1000;
CREATE PERFETTO FUNCTION time_to_ms(nanos LONG) RETURNS LONG AS SELECT $nanos / 1000000;
CREATE PERFETTO FUNCTION time_to_s(nanos LONG) RETURNS LONG AS SELECT $nanos / 1000000000;
CREATE PERFETTO FUNCTION time_to_min(nanos LONG) RETURNS LONG AS SELECT $nanos / 60000000000;
CREATE PERFETTO FUNCTION time_to_hours(nanos LONG) RETURNS LONG AS SELECT $nanos / 3600000000000;
CREATE PERFETTO FUNCTION time_to_days(nanos LONG) RETURNS LONG AS SELECT $nanos / 86400000000000;
)sql";

}  // namespace cprof::store
