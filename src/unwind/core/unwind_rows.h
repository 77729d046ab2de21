/* Compact unwind rows: layout, lookup and step. Freestanding C: the same text is compiled into user space, into the BPF
 * program and into the in-process signal handler. No libc, no allocation, no global state; memory is read only through
 * the caller's bounded reader. See docs/unwind.md.
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
#define CP_MAKE_ROW(pc_low, rule) (((uint32_t)(pc_low) << 20) | (rule))

enum cp_cfa_kind {
  CP_CFA_NONE = 0,       /* no unwind information here */
  CP_CFA_STOP,           /* return address undefined: the root */
  CP_CFA_SP,             /* sp + offset */
  CP_CFA_FP,             /* rbp / x29 + offset */
  CP_CFA_PLT,            /* sp + 8 + ((pc & 15) >= offset) * 8 */
  CP_CFA_SIGNAL,         /* a signal frame: all registers are in the sigcontext */
  CP_CFA_DEREF_SP,       /* *(sp + offset) + post */
  CP_CFA_DEREF_FP,       /* *(fp + offset) + post */
  CP_CFA_REG,            /* another register + offset: first frame only */
  CP_CFA_COMPLEX,        /* needs the full CFI interpreter (user space) */
  CP_CFA_BAD             /* CFI present but broken */
};

enum cp_fp_kind {
  CP_FP_SAME = 0,        /* unchanged */
  CP_FP_AT_CFA,          /* at CFA + fp_offset */
  CP_FP_AT_FP,           /* DRAP: at the current fp + fp_offset */
  CP_FP_UNDEFINED
};

/* 8 bytes; equal rules are stored once per table set. */
typedef struct cp_rule {
  uint8_t cfa_kind;
  uint8_t fp_kind : 4;
  uint8_t ra_kind : 4;   /* enum cp_ra_kind */
  int16_t fp_offset;
  union {
    int32_t offset;      /* of the CFA */
    struct { int16_t first, post; } deref;
    struct { int16_t offset; uint16_t reg; } other;
  };
} cp_rule;

#ifdef __cplusplus
}
#endif
#endif
