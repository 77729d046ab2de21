// What libbpf and the kernel's verifier say about a program, as the text of an error instead of lines on stderr. Used by
// whatever loads BPF objects, on the thread that loads. Never prints.
#pragma once

#include <string>

#include "base/result.h"

namespace cprof::collect {

// What libbpf says while this lives: its print hook has no context of its own, so the newest of a thread gets it.
class BpfMessages {
 public:
  BpfMessages();
  ~BpfMessages();
  BpfMessages(const BpfMessages&) = delete;
  BpfMessages& operator=(const BpfMessages&) = delete;

  void add(std::string_view text);
  // The last line of the verifier or of libbpf that is not just its frame.
  std::string last_line() const;

 private:
  BpfMessages* before_;
  std::string text_;
};

// "bpf: what: why the kernel may have refused it (what was said)".
std::unexpected<Error> bpf_failure(const std::string& what, int error_number, const BpfMessages* messages = nullptr);

}  // namespace cprof::collect
