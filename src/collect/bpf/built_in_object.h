// Opening a BPF object that is built into the program, and attaching its tracepoint programs; a refusal is told with what
// libbpf and the verifier said. Used by the classes of the objects, on the thread that loads. Never prints.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

struct bpf_object;
struct bpf_link;

namespace cprof::collect {

// Not loaded yet, so that maps can be fitted. settings: the bytes of its constant `settings`. The caller closes it.
Result<bpf_object*> open_built_in(std::span<const std::byte> bytes, const char* name, std::span<const std::byte> settings);
Result<void> load_built_in(bpf_object* object);
Result<bpf_link*> attach_built_in(bpf_object* object, const char* program);  // the caller destroys it
// Runs an iterator's program over all there is. what: for messages.
Result<void> run_built_in_iterator(bpf_object* object, const char* program, const char* what);

}  // namespace cprof::collect
