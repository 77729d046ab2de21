// Learns of thread starts, of exits without destructors and of longjmp by putting functions of this library into the import tables of
// the program's files, each in front of the real one. So libcprof.so exports nothing but cprof_*, and a program that never
// starts a session is left as it is. Where a file has no import table (a fully static program) nothing is hooked: threads
// are then found by looking.
#pragma once

namespace cprof::embed {

// All files that are loaded now; again after others were. Any thread.
void hook_imports();

}  // namespace cprof::embed
