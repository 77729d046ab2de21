// Opens the file that a recording ran, and no other: what has been built since has other instructions at those addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "object/elf_file.h"

namespace cprof::source {

struct BinaryIdentity {
  std::string path;
  std::string build_id;        // lower-case hex; "" unknown
  int64_t recorded_ns = 0;     // real time of the recording on this machine; 0: unknown, or another machine's
};

// The build-id must be the recording's. Without one, the file must be older than a recording of this machine.
Result<std::shared_ptr<object::ElfFile>> open_binary(const BinaryIdentity& identity);

}  // namespace cprof::source
