#include "unwind/core/unwind_rows.h"

#include "unwind/core/unwind_step.h"

/* ucontext begins at sp; its general registers at +40 in the order r8..r15 rdi rsi rbp rbx rdx rax rcx rsp rip
 * (struct sigcontext, arch/x86/include/uapi/asm/sigcontext.h). Listed here by DWARF number. */
#define GREG(n) (40 + 8 * (n))
const cp_machine cp_machine_x86_64 = {
    .sp = 7,
    .fp = 6,
    .pc = 16,
    .lr = 0xff,
    .register_count = 17,
    .address_mask = ~0ull,
    .sigcontext = {GREG(13), GREG(12), GREG(14), GREG(11), GREG(9), GREG(8), GREG(10), GREG(15), GREG(0), GREG(1),
                   GREG(2), GREG(3), GREG(4), GREG(5), GREG(6), GREG(7), GREG(16)},
};

/* struct rt_sigframe: siginfo (128), then ucontext whose mcontext is at 176: fault_address, regs[31], sp, pc
 * (arch/arm64/include/uapi/asm/sigcontext.h). Pointer authentication uses the bits above a 48-bit address. */
#define XREG(n) (128 + 176 + 8 + 8 * (n))
const cp_machine cp_machine_aarch64 = {
    .sp = 31,
    .fp = 29,
    .pc = 32,
    .lr = 30,
    .register_count = 33,
    .address_mask = (1ull << 48) - 1,
    .sigcontext = {XREG(0),  XREG(1),  XREG(2),  XREG(3),  XREG(4),  XREG(5),  XREG(6),  XREG(7),  XREG(8),
                   XREG(9),  XREG(10), XREG(11), XREG(12), XREG(13), XREG(14), XREG(15), XREG(16), XREG(17),
                   XREG(18), XREG(19), XREG(20), XREG(21), XREG(22), XREG(23), XREG(24), XREG(25), XREG(26),
                   XREG(27), XREG(28), XREG(29), XREG(30), XREG(31), XREG(32)},
};

_Static_assert(sizeof(cp_rule) == 8, "rules are shared with BPF and stored on disk");
_Static_assert(sizeof(cp_row) == 4, "rows are shared with BPF and stored on disk");

const cp_rule *cp_find_rule(const cp_table *table, uint64_t svma) { return cp_find_rule_inline(table, svma); }

enum cp_status cp_step(const cp_machine *machine, const cp_rule *rule, cp_frame *frame, cp_reader read, void *context) {
  return cp_step_inline(machine, rule, frame, read, context);
}
