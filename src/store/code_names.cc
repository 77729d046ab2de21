#include "store/code_names.h"

#include <array>

namespace cprof::store {
namespace {

// In the order of profile::FrameKind.
constexpr std::array<std::string_view, 5> kFrameKinds = {"user", "kernel", "jit", "interpreted", "unknown"};
static_assert(kFrameKinds.size() == static_cast<size_t>(profile::FrameKind::kUnknown) + 1);

constexpr std::array<CodeType, static_cast<size_t>(CodeKind::kCount)> kTypes = {{
    {"stack_end", static_cast<size_t>(profile::StackEnd::kCount),
     [](size_t code) { return profile::name_of(static_cast<profile::StackEnd>(code)); }},
    {"wait_class", static_cast<size_t>(profile::WaitClass::kCount),
     [](size_t code) { return profile::name_of(static_cast<profile::WaitClass>(code)); }},
    {"frame_kind", kFrameKinds.size(), [](size_t code) { return kFrameKinds[code]; }},
}};

}  // namespace

std::span<const CodeType> all_code_types() { return kTypes; }

}  // namespace cprof::store
