// Field numbers of Perfetto's trace protos (protos/perfetto/trace), one namespace a message; only what is written or read.
#pragma once

#include <cstdint>

namespace cprof::format::pft {

namespace Trace {
enum : uint32_t { kPacket = 1 };
}
namespace Packet {
enum : uint32_t {
  kProcessTree = 2, kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,
  kSequenceFlags = 13, kIncrementalStateCleared = 41, kPreviousPacketDropped = 42, kProcessDescriptor = 43,
  kThreadDescriptor = 44, kCompressedPackets = 50, kStreamingProfile = 54, kClockId = 58, kDefaults = 59,
  kTrackDescriptor = 60, kPerfSample = 66, kFirstPacketOnSequence = 87, kZstdPackets = 133, kStackSample = 135
};
// Values of kSequenceFlags: a sequence begins with kCleared; what uses interned data or defaults has kNeeds.
enum : uint32_t { kCleared = 1, kNeeds = 2 };
}
namespace ClockSnapshot {
enum : uint32_t { kClocks = 1 };
enum : uint32_t { kClockId = 1, kTimestamp = 2, kIsIncremental = 3, kUnitNs = 4 };  // of a clock
enum : uint32_t { kRealtime = 1, kMonotonic = 3, kBoottime = 6 };
}
namespace Defaults {
enum : uint32_t { kTrackEvent = 11, kPerfSample = 12, kClockId = 58, kStackSample = 100 };
enum : uint32_t { kTimebase = 1 };                            // of perf sample defaults
enum : uint32_t { kPeriod = 1, kFrequency = 2, kTracepoint = 3, kCounter = 4, kName = 10 };  // of a timebase
enum : uint32_t { kTracepointName = 1 };
enum : uint32_t { kSource = 1, kPrimary = 2, kFollowers = 3 };  // of stack sample defaults
}
namespace ProcessTree {
enum : uint32_t { kProcesses = 1, kThreads = 2 };
enum : uint32_t { kPid = 1, kCommandLine = 3 };          // of a process
enum : uint32_t { kTid = 1, kName = 2, kProcessId = 3 };  // of a thread
}
namespace TrackDescriptor {
enum : uint32_t { kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5, kCounter = 8, kStaticName = 10 };
enum : uint32_t { kProcessPid = 1, kProcessCommandLine = 2, kProcessName = 6 };
enum : uint32_t { kThreadPid = 1, kThreadTid = 2, kThreadName = 5, kThreadReferenceUs = 6 };
}
namespace CounterDescriptor {
enum : uint32_t { kUnit = 3, kMultiplier = 4, kIsIncremental = 5, kUnitName = 6 };
enum : uint32_t { kTimeNs = 1, kCount = 2, kBytes = 3 };  // of kUnit
}
namespace TrackEvent {
enum : uint32_t {
  kDeltaUs = 1, kCategoryIids = 3, kDebugAnnotations = 4, kLegacy = 6, kType = 9, kNameIid = 10, kTrackUuid = 11,
  kExtraValues = 12, kAbsoluteUs = 16, kCategories = 22, kName = 23, kCounterValue = 30, kExtraTracks = 31,
  kDoubleValue = 44, kExtraDoubleTracks = 45, kExtraDoubles = 46
};
enum : uint32_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4 };
}
namespace LegacyEvent {
enum : uint32_t { kNameIid = 1, kPhase = 2, kDurationUs = 3, kPidOverride = 18, kTidOverride = 19 };
}
namespace DebugAnnotation {
enum : uint32_t {
  kNameIid = 1, kBool = 2, kUint = 3, kInt = 4, kDouble = 5, kString = 6, kPointer = 7, kName = 10, kStringIid = 17
};
}
namespace PerfSample {
enum : uint32_t {
  kCpu = 1, kPid = 2, kTid = 3, kCallstack = 4, kCpuMode = 5, kUnwindError = 16, kRecordsLost = 17, kSkipped = 18
};
enum : uint32_t { kModeKernel = 1, kModeUser = 2 };
}
namespace StackSample {
enum : uint32_t {
  kTask = 1, kTaskIid = 2, kExecution = 3, kExecutionIid = 4, kCallstack = 5, kCallstackIid = 6, kPrimary = 9,
  kPrimaryIid = 10, kWeight = 11, kFollowerWeights = 14
};
enum : uint32_t { kPid = 2, kTid = 3 };              // of a task
enum : uint32_t { kCpu = 2, kMode = 3 };             // of an execution context
enum : uint32_t { kModeUser = 1, kModeKernel = 2 };  // of kMode
enum : uint32_t { kName = 2, kUnit = 3, kUnitText = 4 };  // of a counter
enum : uint32_t { kFrames = 1 };                          // of an inline call stack
enum : uint32_t { kFrameName = 1, kFrameFile = 2, kFrameLine = 3 };
}
namespace StreamingProfile {
enum : uint32_t { kCallstackIids = 1, kDeltasUs = 2 };
}
namespace Interned {
enum : uint32_t {
  kCategories = 1, kEventNames = 2, kAnnotationNames = 3, kFunctionNames = 5, kFrames = 6, kCallstacks = 7,
  kBuildIds = 16, kMappingPaths = 17, kSourcePaths = 18, kMappings = 19, kAnnotationStrings = 29, kTasks = 48,
  kExecutions = 49, kCounters = 50
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
