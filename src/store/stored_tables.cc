// size-exempt: one table
#include "store/tables.h"

namespace cprof::store {
namespace {

void add_run_tables(std::vector<TableDef>& list) {
  list.push_back({"metadata", "What is known of the run as a whole.",
                  {{"id", "ID", "row"},
                   {"name", "TEXT", "which fact: `tool`, `command`, `hostname`, `start_ns`, ...; `comment` may come several times"},
                   {"key_type", "TEXT", "`single`, or `multi` for names that may come several times"},
                   {"int_value", "INTEGER", "the fact when it is a number"},
                   {"str_value", "TEXT", "the fact when it is a text"}}});
  list.push_back({"stats", "Everything that was lost, cut, guessed or refused, counted.",
                  {{"name", "TEXT", "stable name of the loss"},
                   {"key", "INTEGER", "always NULL: no loss has several counts"},
                   {"idx", "INTEGER", "always NULL"},
                   {"severity", "TEXT", "`info`, `notice`, `error` or `data_loss`"},
                   {"source", "TEXT", "`trace`: it happened while recording or importing"},
                   {"value", "INTEGER", "how often"},
                   {"description", "TEXT", "a sentence that says what to do about it"},
                   {"example", "TEXT", "the first case seen; ours, not Perfetto's"}}});
  list.push_back({"cprof_string", "Every text that other tables name by number.",
                  {{"id", "ID", "number of the text; 0 is the empty one"}, {"text", "TEXT", "the text"}}});
  list.push_back({"cprof_enum", "The names of codes, so that no number is ever needed in a query.",
                  {{"id", "ID", "row"},
                   {"type", "TEXT", "`stack_end`, `wait_class` or `frame_kind`"},
                   {"code", "INTEGER", "as it stands in the other tables"},
                   {"name", "TEXT", "its stable name"}}});
  list.push_back({"cprof_metric", "What samples count.",
                  {{"id", "ID", "number of the metric"},
                   {"name", "TEXT", "`cpu-clock`, `samples`, `alloc_space`, ..."},
                   {"unit", "TEXT", "`nanoseconds`, `count`, `bytes`, ..."},
                   {"period", "INTEGER", "sampling period in the unit; 0 unknown"},
                   {"is_time", "INTEGER", "1: weights are nanoseconds on a CPU"}}});
}

void add_task_tables(std::vector<TableDef>& list) {
  list.push_back({"process", "Processes.",
                  {{"id", "ID", "number of the process in this file"},
                   {"upid", "INTEGER AS (id)", "the same"},
                   {"pid", "INTEGER", "the kernel's number, which may be used again"},
                   {"name", "TEXT", "the last name (comm) of its main thread"},
                   {"start_ts", "INTEGER", "when it was first seen; NULL unknown"},
                   {"end_ts", "INTEGER", "when it ended; NULL: it was alive at the end"},
                   {"cgroup", "TEXT", "its control group; empty unknown; ours"},
                   {"container", "TEXT", "that group's container: 12 digits of its id, or its name; empty none; ours"}}});
  list.push_back({"thread", "Threads.",
                  {{"id", "ID", "number of the thread in this file"},
                   {"utid", "INTEGER AS (id)", "the same"},
                   {"tid", "INTEGER", "the kernel's number, which may be used again"},
                   {"name", "TEXT", "its last name"},
                   {"upid", "INTEGER", "its process"},
                   {"is_main_thread", "INTEGER", "1 when its tid is its process's pid"},
                   {"start_ts", "INTEGER", "when it was first seen; NULL unknown"},
                   {"end_ts", "INTEGER", "when it ended; NULL: it was alive at the end"}}});
}

void add_code_tables(std::vector<TableDef>& list) {
  list.push_back({"stack_profile_mapping", "Files, the kernel and generated code, as processes have them mapped.",
                  {{"id", "ID", "number of the mapping; 4294967295 stands for code that lies in none"},
                   {"build_id", "TEXT", "plain lower-case hex; empty unknown"},
                   {"exact_offset", "INTEGER", "offset in the file of its first byte"},
                   {"start_offset", "INTEGER AS (0)", "where the ELF file begins in the file: 0"},
                   {"start", "INTEGER", "first address, in the process where it was first seen"},
                   {"end", "INTEGER", "one after the last address"},
                   {"load_bias", "INTEGER", "address in the process minus address in the ELF file"},
                   {"name", "TEXT", "path, or `[kernel]`, `[vdso]`, `//anon`, `[unknown]`"},
                   {"has_functions", "INTEGER", "1: some of its code has function names"},
                   {"has_filenames", "INTEGER", "1: and source files"},
                   {"has_line_numbers", "INTEGER", "1: and source lines"},
                   {"has_inline_frames", "INTEGER", "1: and inlined functions"}}});
  list.push_back({"cprof_function", "Functions.",
                  {{"id", "ID", "number of the function"},
                   {"name_id", "INTEGER", "its name for people, in cprof_string"},
                   {"system_name_id", "INTEGER", "its name in the symbol table"},
                   {"file_id", "INTEGER", "its source file; the empty text when unknown"},
                   {"start_line", "INTEGER", "where it begins; 0 unknown"}}});
  list.push_back({"cprof_line", "The functions at places in code, innermost inlined one first.",
                  {{"id", "ID", "row; those of one place follow each other"},
                   {"function_id", "INTEGER", "in cprof_function"},
                   {"line", "INTEGER", "source line; 0 unknown"},
                   {"column_number", "INTEGER", "column in it; 0 unknown"}}});
  list.push_back({"cprof_location", "Places in code.",
                  {{"id", "ID", "number of the place"},
                   {"mapping_id", "INTEGER", "in stack_profile_mapping"},
                   {"address", "INTEGER", "in the process where it was first seen"},
                   {"file_address", "INTEGER", "in the terms of the ELF file"},
                   {"function_start", "INTEGER", "where its function begins, likewise; 0 unknown"},
                   {"first_line", "INTEGER", "first of its rows in cprof_line"},
                   {"line_count", "INTEGER", "how many; 0: it has no name"},
                   {"kind", "INTEGER", "code of a frame_kind in cprof_enum"},
                   {"is_return_address", "INTEGER", "1: the call is before it"},
                   {"is_folded", "INTEGER", "1: several places were folded into one (pprof)"}}});
  list.push_back({"stack_profile_callsite", "Stacks as a tree: a row is a frame below its caller.",
                  {{"id", "ID", "number of the call site; 4294967295 stands for a sample without a stack"},
                   {"depth", "INTEGER", "0 for the root"},
                   {"parent_id", "INTEGER", "the caller; NULL for the root"},
                   {"frame_id", "INTEGER", "in stack_profile_frame"}}});
}

void add_value_tables(std::vector<TableDef>& list) {
  list.push_back({"cprof_label", "Labels of samples and arguments of slices.",
                  {{"id", "ID", "row; those of one set follow each other"},
                   {"key_id", "INTEGER", "its key, in cprof_string"},
                   {"text_id", "INTEGER", "its value when it is a text"},
                   {"number", "INTEGER", "its value when it is a number"},
                   {"unit_id", "INTEGER", "the number's unit"},
                   {"is_number", "INTEGER", "1: a number"}}});
  list.push_back({"cprof_label_set", "Which labels go together.",
                  {{"id", "ID", "number of the set"},
                   {"first_label", "INTEGER", "first of its rows in cprof_label"},
                   {"label_count", "INTEGER", "how many"}}});
  list.push_back({"cprof_aggregate", "Values of stacks without a time.",
                  {{"id", "ID", "row"},
                   {"callsite_id", "INTEGER", "the stack; NULL none"},
                   {"metric_id", "INTEGER", "in cprof_metric"},
                   {"label_set_id", "INTEGER", "in cprof_label_set; NULL none"},
                   {"value", "INTEGER", "in the metric's unit"},
                   {"utid", "INTEGER", "the thread; NULL unknown"},
                   {"stack_end", "INTEGER", "code of a stack_end in cprof_enum"}}});
  list.push_back({"cprof_sample_context", "What many samples have in common.",
                  {{"id", "ID", "number of the context"},
                   {"utid", "INTEGER", "the thread"},
                   {"cpu", "INTEGER", "the CPU"},
                   {"in_kernel", "INTEGER", "1: it was in the kernel"},
                   {"stack_end", "INTEGER", "code of a stack_end in cprof_enum"},
                   {"metric_id", "INTEGER", "in cprof_metric"},
                   {"label_set_id", "INTEGER", "in cprof_label_set; NULL none"}}});
  list.push_back({"cprof_sample_chunk",
                  "Samples, up to 256 a row. A column that is the same for all of them holds the value, else a JSON array.",
                  {{"id", "ID", "number of the first sample"},
                   {"ts", "INTEGER", "when the first one was taken"},
                   {"step", "INTEGER", "sample i was taken at ts + i * step + jitter[i]"},
                   {"jitter", "TEXT", "always an array: as many as there are samples"},
                   {"context_id", "INTEGER", "in cprof_sample_context"},
                   {"callsite_id", "INTEGER", "the stack; NULL none"},
                   {"weight", "INTEGER", "in the metric's unit"}}});
}

void add_time_tables(std::vector<TableDef>& list) {
  list.push_back({"cprof_on_cpu", "When threads were on a CPU.",
                  {{"id", "ID", "row"},
                   {"utid", "INTEGER", "the thread"},
                   {"ts", "INTEGER", "from"},
                   {"dur", "INTEGER", "how long"},
                   {"cpu", "INTEGER", "where"},
                   {"preempted", "INTEGER", "1: it did not leave by itself"}}});
  list.push_back({"cprof_off_cpu", "When threads were off the CPU: first waiting, then, once woken, runnable.",
                  {{"id", "ID", "row"},
                   {"utid", "INTEGER", "the thread"},
                   {"ts", "INTEGER", "from"},
                   {"dur", "INTEGER", "how long, both parts"},
                   {"wait_dur", "INTEGER", "of the first part; NULL: all of it, as far as is known"},
                   {"class", "INTEGER", "code of a wait_class in cprof_enum"},
                   {"callsite_id", "INTEGER", "where it left the CPU; NULL unknown"},
                   {"stack_end", "INTEGER", "code of a stack_end in cprof_enum"},
                   {"waker_utid", "INTEGER", "who woke it; NULL unknown"},
                   {"cpu", "INTEGER", "that it left"},
                   {"flags", "INTEGER", "1: the stack is of an earlier switch, 2: the class is guessed, 4: cut by the end, 8: no signal would have ended it"}}});
  list.push_back({"cprof_track", "Lanes for slices, marks and counters that are no thread's own.",
                  {{"id", "ID", "number of the lane"},
                   {"name", "TEXT", "its name"},
                   {"unit", "TEXT", "of counter values"},
                   {"upid", "INTEGER", "its process; NULL none"},
                   {"utid", "INTEGER", "its thread; NULL none"},
                   {"is_counter", "INTEGER", "1: it holds counter values"}}});
  list.push_back({"cprof_slice", "Named spans that a program or an import gave.",
                  {{"id", "ID", "row"},
                   {"ts", "INTEGER", "from"},
                   {"dur", "INTEGER", "how long"},
                   {"utid", "INTEGER", "the thread; NULL none"},
                   {"track_id", "INTEGER", "in cprof_track; NULL: the thread's own lane"},
                   {"name_id", "INTEGER", "in cprof_string"},
                   {"category_id", "INTEGER", "in cprof_string"},
                   {"depth", "INTEGER", "0 outermost"},
                   {"parent_id", "INTEGER", "the slice around it; NULL none"},
                   {"label_set_id", "INTEGER", "its arguments; NULL none"},
                   {"is_open", "INTEGER", "1: its end was never told"}}});
  list.push_back({"cprof_mark", "Instants that a program or an import gave.",
                  {{"id", "ID", "row"},
                   {"ts", "INTEGER", "when"},
                   {"utid", "INTEGER", "the thread; NULL none"},
                   {"track_id", "INTEGER", "in cprof_track; NULL: the thread's own lane"},
                   {"name_id", "INTEGER", "in cprof_string"},
                   {"category_id", "INTEGER", "in cprof_string"},
                   {"label_set_id", "INTEGER", "its arguments; NULL none"}}});
  list.push_back({"cprof_counter", "Values of counters.",
                  {{"id", "ID", "row"},
                   {"ts", "INTEGER", "when"},
                   {"track_id", "INTEGER", "in cprof_track"},
                   {"value", "REAL", "the value"}}});
}

}  // namespace

void add_stored_tables(std::vector<TableDef>& list) {
  add_run_tables(list);
  add_task_tables(list);
  add_code_tables(list);
  add_value_tables(list);
  add_time_tables(list);
}

}  // namespace cprof::store
