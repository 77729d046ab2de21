// The numbers of perf's file format (tools/perf/Documentation/perf.data-file-format.txt) that reader and writer share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cprof::format::perfdata {

inline constexpr std::string_view kMagic = "PERFILE2";
inline constexpr std::string_view kMagicSwapped = "2ELIFREP";
inline constexpr uint64_t kPipeHeaderBytes = 16;
inline constexpr uint64_t kFileHeaderBytes = 104;

// Records that perf itself makes.
enum UserRecord : uint32_t {
  kHeaderAttr = 64,
  kHeaderTracingData = 66,  // followed by as many bytes as its first word says
  kHeaderBuildId = 67,
  kFinishedRound = 68,
  kAuxtrace = 71,           // likewise, a 64-bit size
  kEventUpdate = 78,
  kHeaderFeature = 80,
  kCompressed = 81,
  kCompressed2 = 83,
  kFirstUnknownUserRecord = 84,
};
inline constexpr uint32_t kFirstUserRecord = 64;
inline constexpr uint16_t kHasIdSize = 1 << 15;  // PERF_RECORD_MISC_BUILD_ID_SIZE of kHeaderBuildId: without it the id is filled up with zeros

enum EventUpdateType : uint64_t { kUpdateName = 2 };

// Bits of the header's feature map; the section of bit n, or the n of a HEADER_FEATURE record.
enum Feature : uint32_t {
  kFeatureBuildId = 2,
  kFeatureHostname = 3,
  kFeatureOsRelease = 4,
  kFeatureArch = 6,
  kFeatureCpus = 7,
  kFeatureCommand = 11,
  kFeatureEvents = 12,
  kFeatureClock = 29,
};
inline constexpr uint32_t kFeatureBits = 256;

// Ids of the events of our own captures: which metric, and which of its layouts.
inline constexpr uint64_t kSideBandId = 0xffff;
constexpr uint64_t event_id(uint32_t metric, uint64_t variant) { return variant << 16 | (metric + 1); }
constexpr uint32_t metric_of_id(uint64_t id) { return static_cast<uint32_t>(id & 0xffff) - 1; }

}  // namespace cprof::format::perfdata
