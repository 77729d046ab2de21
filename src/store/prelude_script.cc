// The views and functions that every session begins with: those of the trace processor that need no module, then ours
// (docs/sql.md).
#include "store/module_scripts.h"

namespace cprof::store {

const std::string_view kPreludeScript = R"sql(
CREATE PERFETTO MACRO cast_int(value Expr) RETURNS Expr AS CAST($value AS INT);
CREATE PERFETTO MACRO cast_double(value Expr) RETURNS Expr AS CAST($value AS REAL);
CREATE PERFETTO MACRO cast_string(value Expr) RETURNS Expr AS CAST($value AS TEXT);

CREATE PERFETTO VIEW aggregate_profile AS SELECT * FROM __intrinsic_aggregate_profile;
CREATE PERFETTO VIEW aggregate_sample AS SELECT * FROM __intrinsic_aggregate_sample;

CREATE PERFETTO VIEW thread_track AS SELECT * FROM track WHERE type = 'thread_slice';
CREATE PERFETTO VIEW process_track AS SELECT * FROM track WHERE type = 'process_slice';
CREATE PERFETTO VIEW counter_track AS SELECT * FROM track WHERE type = 'counter';
CREATE PERFETTO VIEW thread_counter_track AS SELECT * FROM counter_track WHERE utid IS NOT NULL;
CREATE PERFETTO VIEW process_counter_track AS SELECT * FROM counter_track WHERE utid IS NULL AND upid IS NOT NULL;
CREATE PERFETTO VIEW counters AS
SELECT c.*, t.name, t.unit FROM counter c JOIN counter_track t ON t.id = c.track_id;

CREATE PERFETTO VIEW slices AS SELECT * FROM slice;
CREATE PERFETTO VIEW instant AS SELECT ts, track_id, name, arg_set_id FROM slice WHERE dur = 0;
CREATE PERFETTO VIEW sched_slice AS SELECT id, ts, dur, cpu, utid, end_state, priority, ucpu FROM sched;
CREATE PERFETTO VIEW cpu AS
SELECT DISTINCT cpu AS id, cpu AS ucpu, cpu FROM (SELECT cpu FROM perf_sample UNION SELECT cpu FROM sched);

CREATE PERFETTO VIEW stack_sample AS
SELECT s.id, s.ts, 'linux.perf' AS source, s.utid, t.upid, s.cpu AS ucpu, s.cpu_mode, s.callsite_id
FROM perf_sample s JOIN thread t ON t.id = s.utid
WHERE s.callsite_id IS NOT NULL;
CREATE PERFETTO VIEW cpu_profile_stack_sample AS
SELECT id, ts, callsite_id, utid, 0 AS process_priority FROM perf_sample WHERE 0;

CREATE PERFETTO VIEW trace_bounds AS
SELECT (SELECT min(int_value) FROM metadata WHERE name = 'start_ns') AS start_ts,
       (SELECT max(int_value) FROM metadata WHERE name = 'end_ns') AS end_ts;
CREATE PERFETTO FUNCTION trace_start() RETURNS TIMESTAMP AS SELECT start_ts FROM trace_bounds;
CREATE PERFETTO FUNCTION trace_end() RETURNS TIMESTAMP AS SELECT end_ts FROM trace_bounds;
CREATE PERFETTO FUNCTION trace_dur() RETURNS DURATION AS SELECT end_ts - start_ts FROM trace_bounds;
CREATE PERFETTO FUNCTION extract_arg(set_id LONG, name STRING) RETURNS STRING AS
SELECT ifnull(string_value, int_value) FROM args WHERE arg_set_id = $set_id AND key = $name LIMIT 1;

CREATE PERFETTO FUNCTION ancestor_slice(slice_id LONG)
RETURNS TABLE(id LONG, ts TIMESTAMP, dur LONG, track_id LONG, category STRING, name STRING, depth LONG, parent_id LONG,
              arg_set_id LONG) AS
WITH RECURSIVE above(id) AS (
  SELECT parent_id FROM slice WHERE id = $slice_id
  UNION ALL
  SELECT s.parent_id FROM above JOIN slice s ON s.id = above.id)
SELECT s.id, s.ts, s.dur, s.track_id, s.category, s.name, s.depth, s.parent_id, s.arg_set_id
FROM above JOIN slice s ON s.id = above.id;
CREATE PERFETTO FUNCTION descendant_slice(slice_id LONG)
RETURNS TABLE(id LONG, ts TIMESTAMP, dur LONG, track_id LONG, category STRING, name STRING, depth LONG, parent_id LONG,
              arg_set_id LONG) AS
WITH RECURSIVE below(id) AS (
  SELECT id FROM slice WHERE parent_id = $slice_id
  UNION ALL
  SELECT s.id FROM below JOIN slice s ON s.parent_id = below.id)
SELECT s.id, s.ts, s.dur, s.track_id, s.category, s.name, s.depth, s.parent_id, s.arg_set_id
FROM below JOIN slice s ON s.id = below.id;
CREATE PERFETTO FUNCTION slice_is_ancestor(ancestor_id LONG, descendant_id LONG) RETURNS BOOL AS
SELECT EXISTS (SELECT 1 FROM ancestor_slice($descendant_id) WHERE id = $ancestor_id);

CREATE PERFETTO VIEW top_functions AS
SELECT p.scope, p.sample_type_type AS metric, p.sample_type_unit AS unit, f.name, f.module, f.source_file, f.self, f.total,
       round(100.0 * f.self / t.value, 2) AS self_percent, round(100.0 * f.total / t.value, 2) AS total_percent
FROM __intrinsic_aggregate_profile p
JOIN (SELECT aggregate_profile_id, total(value) AS value FROM __intrinsic_aggregate_sample GROUP BY 1) t
  ON t.aggregate_profile_id = p.id
JOIN function_totals('SELECT callsite_id, value_int FROM __intrinsic_aggregate_sample WHERE aggregate_profile_id = ' || p.id) f;
CREATE PERFETTO VIEW top_modules AS
SELECT p.scope, p.sample_type_type AS metric, p.sample_type_unit AS unit, m.name AS module, sum_int(s.value_int) AS self
FROM __intrinsic_aggregate_sample s
JOIN __intrinsic_aggregate_profile p ON p.id = s.aggregate_profile_id
JOIN stack_profile_callsite c ON c.id = s.callsite_id
JOIN stack_profile_frame f ON f.id = c.frame_id
JOIN stack_profile_mapping m ON m.id = f.mapping
GROUP BY p.id, m.name ORDER BY p.id, self DESC;
CREATE PERFETTO VIEW hot_stacks AS
-- LIMIT -1: sorted before the texts are made.
SELECT p.scope, p.sample_type_type AS metric, p.sample_type_unit AS unit, s.value, s.callsite_id, stack(s.callsite_id) AS stack
FROM (SELECT aggregate_profile_id, callsite_id, sum_int(value_int) AS value FROM __intrinsic_aggregate_sample
      GROUP BY 1, 2 ORDER BY 1, 3 DESC LIMIT -1) s
CROSS JOIN __intrinsic_aggregate_profile p ON p.id = s.aggregate_profile_id;
CREATE PERFETTO VIEW sample_labels AS
SELECT s.id AS aggregate_sample_id, a.key, a.display_value AS value, a.unit
FROM __intrinsic_aggregate_sample s JOIN args a ON a.arg_set_id = s.arg_set_id;

CREATE PERFETTO VIEW thread_time AS
SELECT t.utid, p.pid, t.tid, p.name AS process_name, t.name AS thread_name,
       (SELECT count(*) FROM perf_sample s WHERE s.utid = t.utid) AS samples,
       (SELECT ifnull(sum(dur), 0) FROM sched s WHERE s.utid = t.utid) AS on_cpu_ns,
       (SELECT ifnull(sum(dur), 0) FROM off_cpu o WHERE o.utid = t.utid AND o.class = 'sched') AS runnable_ns,
       (SELECT ifnull(sum(dur), 0) FROM off_cpu o WHERE o.utid = t.utid AND o.class <> 'sched') AS waiting_ns
FROM thread t LEFT JOIN process p ON p.id = t.upid;
CREATE PERFETTO VIEW waits AS
SELECT class, count(*) AS count, sum(dur) AS total_ns, max(dur) AS max_ns FROM off_cpu GROUP BY class ORDER BY total_ns DESC;
CREATE PERFETTO VIEW wait_sites AS
SELECT class, count(*) AS count, sum(dur) AS total_ns, max(dur) AS max_ns, callsite_id, stack(callsite_id) AS stack
FROM off_cpu GROUP BY class, callsite_id ORDER BY total_ns DESC;
)sql";

}  // namespace cprof::store
