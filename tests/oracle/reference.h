// elfutils' libdwfl over the same registers and bytes: the oracle.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capture.h"

namespace cprof::oracle {

class ImageFiles;

class Reference {
 public:
  Reference();
  ~Reference();

  // Makes the modules of this space known; kept while the space is the same, so that unwinding it again is warm.
  void enter(const Snapshot& snapshot);
  // Return addresses leaf first, as libdwfl gives them. files: for reads outside the stack.
  const std::vector<uint64_t>& unwind(const Snapshot& snapshot, ImageFiles& files);
  // libdwfl's own opinion: no FDE holds this pc (return addresses: pass pc - 1).
  bool is_without_cfi(uint64_t pc);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cprof::oracle
