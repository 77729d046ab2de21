/* Compact unwind rows: layout and the out-of-line entry points. Freestanding C: the same text is compiled into user
 * space, into the BPF program and into the in-process signal handler. No libc, no allocation, no global state; memory is
 * read only through the caller's bounded reader. unwind_step.h holds the bodies (BPF and hot loops include that one).
 * See docs/unwind.md.
 */
#ifndef CPROF_UNWIND_ROWS_H
#define CPROF_UNWIND_ROWS_H

#ifndef __VMLINUX_H__
#include <stdint.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A row: the low 12 bits of its first pc in bits 31..20, the rule's index in bits 19..0. Rows are grouped by 4 KiB page of
 * text; the first row of a page always has pc low 0, so a search never leaves its page. */
typedef uint32_t cp_row;
#define CP_ROW_PC(row) ((row) >> 20)
#define CP_ROW_RULE(row) ((row) & 0xfffffu)
#define CP_MAKE_ROW(pc_low, rule) (((uint32_t)(pc_low) << 20) | (uint32_t)(rule))
#define CP_PAGE_BITS 12
#define CP_SEARCH_STEPS 12   /* a page holds at most 4,096 rows */

enum cp_cfa_kind {
  CP_CFA_NONE = 0,       /* no unwind information here */
  CP_CFA_STOP,           /* return address undefined: the root */
  CP_CFA_SP,             /* sp + offset */
  CP_CFA_FP,             /* rbp / x29 + offset */
  CP_CFA_PLT,            /* sp + 8 + ((pc & 15) >= offset) * 8 */
  CP_CFA_SIGNAL,         /* a signal frame: all registers are in the sigcontext */
  CP_CFA_DEREF_SP,       /* *(sp + first) + post */
  CP_CFA_DEREF_FP,       /* *(fp + first) + post */
  CP_CFA_REG,            /* register `second` + narrow offset: only where all registers are known */
  CP_CFA_COMPLEX,        /* needs the full CFI interpreter (user space) */
  CP_CFA_BAD             /* CFI present but broken */
};

enum cp_fp_kind {
  CP_FP_SAME = 0,        /* unchanged */
  CP_FP_AT_CFA,          /* at CFA + fp_offset */
  CP_FP_AT_FP,           /* DRAP: at the current fp + fp_offset */
  CP_FP_UNDEFINED
};

enum cp_ra_kind {
  CP_RA_BELOW_CFA = 0,   /* at CFA - 8: every call of x86-64 */
  CP_RA_IN_LR,           /* aarch64: still in x30 */
  CP_RA_AFTER_FP,        /* aarch64 stp x29, x30: at CFA + fp_offset + 8 */
  CP_RA_AT_CFA,          /* at CFA + fp_offset; the frame pointer is not saved */
  CP_RA_AT_SECOND,       /* at CFA + second; the CFA's offset is narrow */
  CP_RA_REGISTER         /* in register `second` (vfork): only where all registers are known; the offset is narrow */
};
#define CP_RA_IS_NARROW(ra_kind) ((ra_kind) >= CP_RA_AT_SECOND)

/* 8 bytes; equal rules are stored once per table set. */
typedef struct cp_rule {
  uint8_t cfa_kind;
  uint8_t fp_kind : 3;
  uint8_t is_eh_return : 1;  /* the function ends by __builtin_eh_return: its frame may hold another's registers */
  uint8_t ra_kind : 4;   /* enum cp_ra_kind */
  int16_t fp_offset;
  union {
    int32_t offset;                               /* of the CFA */
    struct { int16_t first, post; } deref;
    struct { int16_t offset, second; } narrow;    /* CP_CFA_REG, and CP_RA_IS_NARROW */
  };
} cp_rule;

/* One module's rows. Addresses are the ELF file's own (svma). */
typedef struct cp_table {
  const cp_row *rows;
  const uint32_t *pages;   /* page_count + 1 entries: the first row of each page; equal neighbours: nothing known */
  const cp_rule *rules;
  uint64_t base;           /* address of page 0, a multiple of 4,096 */
  uint32_t page_count;
  uint32_t rule_count;
} cp_table;

/* What of a machine the step must know. Offsets are from the sp of the signal frame (of the sigreturn trampoline). */
#define CP_MAX_REGISTERS 33
typedef struct cp_machine {
  uint8_t sp, fp, pc, lr;                         /* DWARF numbers; lr is 0xff where calls push */
  uint8_t register_count;
  uint64_t address_mask;                          /* strips pointer authentication from return addresses */
  int16_t sigcontext[CP_MAX_REGISTERS];           /* where a signal frame keeps each register */
} cp_machine;

/* One frame while walking. */
typedef struct cp_frame {
  uint64_t pc, sp, fp, lr;
  const uint64_t *registers;   /* by DWARF number; null unless the frame's pc is exact and all registers are known */
  uint64_t valid;              /* bit n: registers[n] is known */
  uint8_t exact;               /* pc is an interrupted instruction, not a return address */
} cp_frame;

enum cp_status {
  CP_OK = 0,
  CP_STOPPED,            /* the root */
  CP_NO_RULE,            /* CP_CFA_NONE: the caller may try the frame pointer */
  CP_NEEDS_CFI,          /* CP_CFA_COMPLEX */
  CP_NEEDS_REGISTERS,    /* a register that rows do not carry */
  CP_BROKEN,             /* CP_CFA_BAD */
  CP_NO_PROGRESS,        /* the CFA did not grow */
  CP_READ_FAILED         /* the reader said no; it knows why */
};

/* Returns 0 and *value, or anything else for "no". Must check the address itself. */
typedef int (*cp_reader)(void *context, uint64_t address, uint64_t *value);

extern const cp_machine cp_machine_x86_64;
extern const cp_machine cp_machine_aarch64;

/* Null: nothing is known about svma. At most CP_SEARCH_STEPS steps. For a return address pass it minus one. */
const cp_rule *cp_find_rule(const cp_table *table, uint64_t svma);

/* Turns frame into its caller. On anything but CP_OK the frame is unchanged. At most 4 reads. */
enum cp_status cp_step(const cp_machine *machine, const cp_rule *rule, cp_frame *frame, cp_reader read, void *context);

#ifdef __cplusplus
}
#endif
#endif
