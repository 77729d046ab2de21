// Field numbers of pprof's profile.proto (github.com/google/pprof/proto/profile.proto), one namespace a message.
#pragma once

#include <cstdint>

namespace cprof::format::pb {

namespace Profile {
enum : uint32_t {
  kSampleType = 1, kSample = 2, kMapping = 3, kLocation = 4, kFunction = 5, kStringTable = 6, kDropFrames = 7,
  kKeepFrames = 8, kTimeNanos = 9, kDurationNanos = 10, kPeriodType = 11, kPeriod = 12, kComment = 13,
  kDefaultSampleType = 14, kDocUrl = 15  // never written: Perfetto refuses files that have it
};
}
namespace ValueType {
enum : uint32_t { kType = 1, kUnit = 2 };
}
namespace Sample {
enum : uint32_t { kLocationId = 1, kValue = 2, kLabel = 3 };
}
namespace Label {
enum : uint32_t { kKey = 1, kStr = 2, kNum = 3, kNumUnit = 4 };
}
namespace Mapping {
enum : uint32_t {
  kId = 1, kMemoryStart = 2, kMemoryLimit = 3, kFileOffset = 4, kFilename = 5, kBuildId = 6, kHasFunctions = 7,
  kHasFilenames = 8, kHasLineNumbers = 9, kHasInlineFrames = 10
};
}
namespace Location {
enum : uint32_t { kId = 1, kMappingId = 2, kAddress = 3, kLine = 4, kIsFolded = 5 };
}
namespace Line {
enum : uint32_t { kFunctionId = 1, kLine = 2, kColumn = 3 };
}
namespace Function {
enum : uint32_t { kId = 1, kName = 2, kSystemName = 3, kFilename = 4, kStartLine = 5 };
}

// Keys of the labels that carry a sample's thread; Perfetto and pprof show them as any label.
inline constexpr const char* kLabelProcess = "process";
inline constexpr const char* kLabelPid = "pid";
inline constexpr const char* kLabelThread = "thread";
inline constexpr const char* kLabelTid = "tid";
inline constexpr const char* kLabelCgroup = "cgroup";        // of the process, where it is known
inline constexpr const char* kLabelContainer = "container";  // and its container, where it is one's

}  // namespace cprof::format::pb
