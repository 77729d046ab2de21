/* What of each machine the step must know, as initialisers of a cp_machine: the BPF program needs them as constants of its
 * own, everyone else takes the objects that unwind_rows.h names.
 */
#ifndef CPROF_UNWIND_MACHINES_H
#define CPROF_UNWIND_MACHINES_H

#include "unwind/core/unwind_rows.h"

/* ucontext begins at sp; its general registers at +40 in the order r8..r15 rdi rsi rbp rbx rdx rax rcx rsp rip
 * (struct sigcontext, arch/x86/include/uapi/asm/sigcontext.h). Listed here by DWARF number. */
#define CP_GREG(n) (40 + 8 * (n))
#define CP_MACHINE_X86_64 { \
    .sp = 7, \
    .fp = 6, \
    .pc = 16, \
    .lr = 0xff, \
    .register_count = 17, \
    .address_mask = ~0ull, \
    .sigcontext = {CP_GREG(13), CP_GREG(12), CP_GREG(14), CP_GREG(11), CP_GREG(9), CP_GREG(8), CP_GREG(10), \
                   CP_GREG(15), CP_GREG(0), CP_GREG(1), CP_GREG(2), CP_GREG(3), CP_GREG(4), CP_GREG(5), CP_GREG(6), \
                   CP_GREG(7), CP_GREG(16)}, \
}

/* struct rt_sigframe: siginfo (128), then ucontext whose mcontext is at 176: fault_address, regs[31], sp, pc
 * (arch/arm64/include/uapi/asm/sigcontext.h). Pointer authentication uses the bits above a 48-bit address. */
#define CP_XREG(n) (128 + 176 + 8 + 8 * (n))
#define CP_MACHINE_AARCH64 { \
    .sp = 31, \
    .fp = 29, \
    .pc = 32, \
    .lr = 30, \
    .register_count = 33, \
    .address_mask = (1ull << 48) - 1, \
    .sigcontext = {CP_XREG(0), CP_XREG(1), CP_XREG(2), CP_XREG(3), CP_XREG(4), CP_XREG(5), CP_XREG(6), CP_XREG(7), \
                   CP_XREG(8), CP_XREG(9), CP_XREG(10), CP_XREG(11), CP_XREG(12), CP_XREG(13), CP_XREG(14), CP_XREG(15), \
                   CP_XREG(16), CP_XREG(17), CP_XREG(18), CP_XREG(19), CP_XREG(20), CP_XREG(21), CP_XREG(22), \
                   CP_XREG(23), CP_XREG(24), CP_XREG(25), CP_XREG(26), CP_XREG(27), CP_XREG(28), CP_XREG(29), \
                   CP_XREG(30), CP_XREG(31), CP_XREG(32)}, \
}

#endif
