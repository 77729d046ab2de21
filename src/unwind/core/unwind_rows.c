#include "unwind/core/unwind_rows.h"

#include "unwind/core/unwind_machines.h"
#include "unwind/core/unwind_step.h"

const cp_machine cp_machine_x86_64 = CP_MACHINE_X86_64;
const cp_machine cp_machine_aarch64 = CP_MACHINE_AARCH64;

_Static_assert(sizeof(cp_rule) == 8, "rules are shared with BPF and stored on disk");
_Static_assert(sizeof(cp_row) == 4, "rows are shared with BPF and stored on disk");

const cp_rule *cp_find_rule(const cp_table *table, uint64_t svma) { return cp_find_rule_inline(table, svma); }

enum cp_status cp_step(const cp_machine *machine, const cp_rule *rule, cp_frame *frame, cp_reader read, void *context) {
  return cp_step_inline(machine, rule, frame, read, context);
}
