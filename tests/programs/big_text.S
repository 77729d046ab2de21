# 300,000 functions of about 500 bytes, each with a name and unwind information that changes four times: what a large
# statically linked program has. big_call, which big_main.c calls through, is the last of them.
.text
.macro filler
big_function_\@:
  .type big_function_\@, @function
  .cfi_startproc
  push %rbx
  .cfi_def_cfa_offset 16
  .cfi_offset %rbx, -16
  sub $64, %rsp
  .cfi_def_cfa_offset 80
  .skip 488, 0x90
  add $64, %rsp
  .cfi_def_cfa_offset 16
  pop %rbx
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
  .size big_function_\@, .-big_function_\@
.endm

.rept 300000
filler
.endr

.globl big_call
.type big_call, @function
big_call:
  .cfi_startproc
  sub $72, %rsp
  .cfi_def_cfa_offset 80
  call *%rdi
  add $72, %rsp
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
.size big_call, .-big_call
.section .note.GNU-stack, "", @progbits
