// Field numbers of Perfetto's trace protos (protos/perfetto/trace), one namespace a message; only what is written.
#pragma once

#include <cstdint>

namespace cprof::format::pft {

namespace Trace {
enum : uint32_t { kPacket = 1 };
}
namespace Packet {
enum : uint32_t {
  kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12, kSequenceFlags = 13,
  kPreviousPacketDropped = 42, kClockId = 58, kDefaults = 59, kTrackDescriptor = 60, kPerfSample = 66,
  kFirstPacketOnSequence = 87
};
// Values of kSequenceFlags: a sequence begins with kCleared; what uses interned data or defaults has kNeeds.
enum : uint32_t { kCleared = 1, kNeeds = 2 };
}
namespace ClockSnapshot {
enum : uint32_t { kClocks = 1 };
enum : uint32_t { kClockId = 1, kTimestamp = 2 };  // of a clock
enum : uint32_t { kRealtime = 1, kMonotonic = 3, kBoottime = 6 };
}
namespace Defaults {
enum : uint32_t { kPerfSample = 12, kClockId = 58 };
enum : uint32_t { kTimebase = 1 };                            // of perf sample defaults
enum : uint32_t { kFrequency = 2, kCounter = 4, kName = 10 };  // of a timebase
}
namespace TrackDescriptor {
enum : uint32_t { kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5 };
enum : uint32_t { kProcessPid = 1, kProcessName = 6 };
enum : uint32_t { kThreadPid = 1, kThreadTid = 2, kThreadName = 5 };
}
namespace TrackEvent {
enum : uint32_t { kDebugAnnotations = 4, kType = 9, kTrackUuid = 11, kCategories = 22, kName = 23 };
enum : uint32_t { kSliceBegin = 1, kSliceEnd = 2 };
}
namespace DebugAnnotation {
enum : uint32_t { kString = 6, kName = 10 };
}
namespace PerfSample {
enum : uint32_t { kCpu = 1, kPid = 2, kTid = 3, kCallstack = 4, kCpuMode = 5 };
enum : uint32_t { kModeKernel = 1, kModeUser = 2 };
}
namespace Interned {
enum : uint32_t {
  kFunctionNames = 5, kFrames = 6, kCallstacks = 7, kBuildIds = 16, kMappingPaths = 17, kSourcePaths = 18,
  kMappings = 19
};
enum : uint32_t { kIid = 1, kStr = 2 };  // of a string
}
namespace Mapping {
enum : uint32_t { kIid = 1, kBuildId = 2, kStart = 4, kEnd = 5, kLoadBias = 6, kPath = 7, kExactOffset = 8 };
}
namespace Frame {
enum : uint32_t {
  kIid = 1, kFunctionName = 2, kMapping = 3, kRelPc = 4, kSourcePath = 5, kLine = 6, kKind = 7
};
enum : uint32_t { kNative = 1, kKernel = 2, kInterpreted = 3, kJit = 4 };  // of kKind
}
namespace Callstack {
enum : uint32_t { kIid = 1, kFrameIds = 2 };  // kFrameIds: root first, never packed
}

}  // namespace cprof::format::pft
