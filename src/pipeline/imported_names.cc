#include "pipeline/imported_names.h"

namespace cprof::pipeline {

void demangle_imported(profile::Profile& profile, symbolize::DemangleStyle style) {
  if (style == symbolize::DemangleStyle::kNone) return;
  symbolize::Demangler demangler(style);
  for (profile::Function& function : profile.functions) {
    if (function.name != function.system_name) continue;
    std::string_view raw = profile.text(function.name);
    if (raw.starts_with("_Z") || raw.starts_with("_R")) function.name = profile.strings.intern(demangler.demangle(raw));
  }
}

}  // namespace cprof::pipeline
