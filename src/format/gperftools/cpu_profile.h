// The binary CPU profile: machine words of the profiled program, 4 or 8 bytes in either byte order, then its memory map as
// text. Used by gperftools.cc.
#pragma once

#include <optional>
#include <string_view>

#include "format/gperftools/legacy_profile.h"
#include "format/gperftools/legacy_stream.h"

namespace cprof::format {

struct CpuHeader {
  WordShape shape;
  uint64_t period_us = 0;
  bool is_java = false;  // addresses are numbers of the names behind the samples
};

// The header at the beginning of these bytes; nothing when they are no CPU profile.
std::optional<CpuHeader> parse_cpu_header(std::string_view head);
// Reads the header and all samples, up to the text behind them.
Result<void> read_cpu_samples(LegacyStream& stream, const CpuHeader& header, LegacyProfile& profile);

}  // namespace cprof::format
