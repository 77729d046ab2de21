// What the modules of modules.cc are made of, as text. Only modules.cc includes it.
#pragma once

#include <string_view>

namespace cprof::store {

extern const std::string_view kPreludeScript, kStackProfileScript, kHierarchyScript, kPerfSamplesScript,
    kSchedStatesScript, kTimeInStateScript, kSchedContextScript, kSliceHierarchyScript, kSelfDurationScript,
    kSliceContextScript, kCpuProfilingScript, kTimeConversionScript;

}  // namespace cprof::store
