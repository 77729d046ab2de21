// size-exempt: one table
// Single values are looked up by scalar subqueries, not by joins: so each view stays one that SQLite merges into the
// query around it, also on the right side of a LEFT JOIN, and a look-up by id stays a look-up.
#include "store/tables.h"

namespace cprof::store {
namespace {

// rel_pc is in the file's terms where the address lies in the mapping; both may be of the kernel, that is negative.
constexpr std::string_view kFrames = R"(SELECT l.id,
  ifnull((SELECT text FROM cprof_string WHERE id = (SELECT name_id FROM cprof_function WHERE id =
    (SELECT function_id FROM cprof_line WHERE l.line_count > 0 AND id = l.first_line))), '[unknown]'),
  ifnull(l.mapping_id, 4294967295),
  ifnull((SELECT l.address - m.start + m.exact_offset FROM stack_profile_mapping m
    WHERE m.id = l.mapping_id AND (l.address < 0) = (m.start < 0) AND l.address >= m.start), l.address),
  CASE WHEN l.line_count > 0 THEN l.id END,
  NULL,
  (SELECT name FROM cprof_enum WHERE type = 'frame_kind' AND code = l.kind)
FROM cprof_location l)";

constexpr std::string_view kSymbols = R"(SELECT n.id, l.id,
  (SELECT text FROM cprof_string WHERE id = f.name_id),
  (SELECT text FROM cprof_string WHERE id = f.file_id AND text <> ''),
  CASE WHEN n.line > 0 THEN n.line WHEN f.start_line > 0 THEN f.start_line END,
  n.id < l.first_line + l.line_count - 1
FROM cprof_location l
JOIN cprof_line n ON n.id >= l.first_line AND n.id < l.first_line + l.line_count
JOIN cprof_function f ON f.id = n.function_id)";

constexpr std::string_view kSamples = R"(SELECT c.id + j.key, c.ts + c.step * j.key + j.value,
  x.utid, x.cpu, CASE WHEN x.in_kernel THEN 'kernel' ELSE 'user' END,
  CASE typeof(c.callsite_id) WHEN 'text' THEN c.callsite_id ->> j.key ELSE c.callsite_id END,
  (SELECT name FROM cprof_enum WHERE type = 'stack_end' AND code = x.stack_end
    AND name NOT IN ('complete', 'not-unwound', 'exec-in-progress')),
  x.metric_id,
  CASE typeof(c.weight) WHEN 'text' THEN c.weight ->> j.key ELSE c.weight END,
  x.label_set_id
FROM cprof_sample_chunk c, json_each(c.jitter) j
JOIN cprof_sample_context x
  ON x.id = CASE typeof(c.context_id) WHEN 'text' THEN c.context_id ->> j.key ELSE c.context_id END)";

// Sums are made of two halves: SQLite gives up a query whose sum leaves 64 bits, and one absurd value would do that.
constexpr std::string_view kAggregateSamples = R"(SELECT row_number() OVER (ORDER BY metric_id, callsite_id, label_set_id) - 1,
  metric_id, callsite_id,
  CAST(high * 4294967296 + low AS REAL), high * 4294967296 + low, label_set_id
FROM (SELECT metric_id, ifnull(callsite_id, 4294967295) AS callsite_id, label_set_id,
        sum(value >> 32) AS high, sum(value & 4294967295) AS low
      FROM (SELECT metric_id, callsite_id, label_set_id, value FROM cprof_aggregate
            UNION ALL SELECT metric_id, callsite_id, arg_set_id, weight FROM perf_sample
            UNION ALL SELECT (SELECT id FROM cprof_metric WHERE name = 'offcpu'), callsite_id, NULL, dur FROM cprof_off_cpu
              WHERE EXISTS (SELECT 1 FROM cprof_metric WHERE name = 'offcpu'))
      GROUP BY 1, 2, 3))";

void add_stack_views(std::vector<TableDef>& list) {
  list.push_back({"stack_profile_frame", "Places in code, by the innermost function there.",
                  {{"id", "INTEGER", "number of the frame"},
                   {"name", "TEXT", "function; `[unknown]` when it has no name"},
                   {"mapping", "INTEGER", "in stack_profile_mapping; 4294967295, `[unknown]`, for what has none"},
                   {"rel_pc", "INTEGER", "offset in the file: address - start + exact_offset"},
                   {"symbol_set_id", "INTEGER", "its rows in stack_profile_symbol; NULL: it has no name"},
                   {"deobfuscated_name", "TEXT", "always NULL"},
                   {"type", "TEXT", "`user`, `kernel`, `jit`, `interpreted` or `unknown`; ours"}},
                  kFrames});
  list.push_back({"stack_profile_symbol", "The functions of a frame: inlined ones first, the real one last.",
                  {{"id", "INTEGER", "row; within a set the innermost comes first"},
                   {"symbol_set_id", "INTEGER", "of the frame"},
                   {"name", "TEXT", "function"},
                   {"source_file", "TEXT", "NULL unknown"},
                   {"line_number", "INTEGER", "the line, else where the function begins, else NULL"},
                   {"inlined", "INTEGER", "1 for all but the last of a set"}},
                  kSymbols});
}

void add_sample_views(std::vector<TableDef>& list) {
  list.push_back({"perf_sample", "Samples with a time.",
                  {{"id", "INTEGER", "number of the sample, in the order of time"},
                   {"ts", "INTEGER", "when"},
                   {"utid", "INTEGER", "the thread"},
                   {"cpu", "INTEGER", "the CPU"},
                   {"cpu_mode", "TEXT", "`user` or `kernel`"},
                   {"callsite_id", "INTEGER", "the stack; NULL none"},
                   {"unwind_error", "TEXT", "why the stack does not reach its root; NULL when it does"},
                   {"metric_id", "INTEGER", "in cprof_metric; ours, as are the next ones"},
                   {"weight", "INTEGER", "in the metric's unit"},
                   {"arg_set_id", "INTEGER", "its labels, in args; NULL none"}},
                  kSamples});
  list.push_back({"args", "Labels of samples, arguments of slices and marks.",
                  {{"id", "INTEGER", "row"},
                   {"arg_set_id", "INTEGER", "which ones go together"},
                   {"flat_key", "TEXT", "key"},
                   {"key", "TEXT", "the same"},
                   {"int_value", "INTEGER", "NULL when a text"},
                   {"string_value", "TEXT", "NULL when a number"},
                   {"real_value", "REAL", "always NULL"},
                   {"value_type", "TEXT", "`int` or `string`"},
                   {"display_value", "TEXT", "the value as a text"},
                   {"unit", "TEXT", "of a number; ours"}},
                  R"(SELECT l.id, s.id, k.text, k.text,
  CASE WHEN l.is_number THEN l.number END, CASE WHEN NOT l.is_number THEN t.text END, NULL,
  CASE WHEN l.is_number THEN 'int' ELSE 'string' END,
  CASE WHEN l.is_number THEN CAST(l.number AS TEXT) ELSE t.text END, u.text
FROM cprof_label_set s
JOIN cprof_label l ON l.id >= s.first_label AND l.id < s.first_label + s.label_count
LEFT JOIN cprof_string k ON k.id = l.key_id
LEFT JOIN cprof_string t ON t.id = l.text_id
LEFT JOIN cprof_string u ON u.id = l.unit_id)"});
}

void add_aggregate_views(std::vector<TableDef>& list) {
  const std::vector<Column> profile = {{"id", "INTEGER", "number of the metric"},
                                       {"scope", "TEXT", "name of the file that was imported, else `recording`"},
                                       {"name", "TEXT", "`pprof ` and the type"},
                                       {"sample_type_type", "TEXT", "`cpu`, `alloc_space`, ...; `unknown` when it has no name"},
                                       {"sample_type_unit", "TEXT", "`nanoseconds`, `bytes`, ...; `count` when it has none"}};
  const std::vector<Column> sample = {{"id", "INTEGER", "row"},
                                      {"aggregate_profile_id", "INTEGER", "in __intrinsic_aggregate_profile"},
                                      {"callsite_id", "INTEGER", "the stack; 4294967295, `[unknown]`, for what has none"},
                                      {"value", "REAL", "sum for (profile, call site, labels)"},
                                      {"value_int", "INTEGER", "the same, exact; ours, as is the next one"},
                                      {"arg_set_id", "INTEGER", "the labels, in args; NULL none"}};
  list.push_back({"__intrinsic_aggregate_profile", "What there are values of, timed or not: one row a metric.", profile,
                  R"(SELECT id, ifnull((SELECT str_value FROM metadata WHERE name = 'source' AND str_value <> ''), 'recording'),
  'pprof ' || iif(name = '', 'unknown', name), iif(name = '', 'unknown', name), iif(unit = '', 'count', unit)
FROM cprof_metric)"});
  list.push_back({"__intrinsic_aggregate_sample", "Values by stack, timed or not.", sample, kAggregateSamples});
  list.push_back({"aggregate_profile", "The same as __intrinsic_aggregate_profile.", profile,
                  "SELECT * FROM __intrinsic_aggregate_profile"});
  list.push_back({"aggregate_sample", "The same as __intrinsic_aggregate_sample.", sample,
                  "SELECT * FROM __intrinsic_aggregate_sample"});
}

}  // namespace

void add_code_views(std::vector<TableDef>& list) {
  add_stack_views(list);
  add_sample_views(list);
  add_aggregate_views(list);
}

}  // namespace cprof::store
