#include "pipeline/wait_classifier.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "pipeline/generated_code.h"
#include "timeline/wait_class.h"

namespace cprof::pipeline {
namespace {

using profile::WaitClass;

class Classifier {
 public:
  Classifier(const profile::Profile& profile, const object::KernelSymbols* symbols)
      : profile_(profile), symbols_(symbols), known_(profile.sites.size()) {}

  void classify(profile::OffCpuInterval& off) {
    if (off.woken_ns == off.start_ns) {  // told by the switch itself, whatever the stack
      off.wait_class = WaitClass::kSched;
      return;
    }
    const auto from_stack = class_of(off.site);
    off.is_guessed = off.is_borrowed || !from_stack;
    off.wait_class = from_stack.value_or(WaitClass::kOther);
  }

 private:
  struct Known {
    bool is_looked_up = false;
    std::optional<WaitClass> wait_class;
  };

  // None without named kernel frames.
  std::optional<WaitClass> class_of(profile::CallSiteId site) {
    if (!site.valid() || !symbols_) return std::nullopt;
    Known& known = known_[site.index()];
    if (!known.is_looked_up) {
      known.is_looked_up = true;
      known.wait_class = look_up(site);
    }
    return known.wait_class;
  }

  std::optional<WaitClass> look_up(profile::CallSiteId site) {
    names_.clear();
    for (; site.valid(); site = profile_.sites[site.index()].parent) {
      const profile::Location& location = profile_.locations[profile_.sites[site.index()].location.index()];
      if (location.kind != profile::FrameKind::kKernel) break;
      const bool is_generated = location.mapping.valid() && is_generated_path(profile_.text(profile_.mappings[location.mapping.index()].path));
      const auto symbol = symbols_->find(location.call_address());
      if (symbol && !is_generated) names_.push_back(symbol->name);
    }
    if (names_.empty()) return std::nullopt;
    std::ranges::reverse(names_);
    return timeline::wait_class_of(names_);
  }

  const profile::Profile& profile_;
  const object::KernelSymbols* symbols_;
  std::vector<Known> known_;  // by site
  std::vector<std::string_view> names_;
};

}  // namespace

void classify_waits(profile::Profile& profile, const object::KernelSymbols* symbols) {
  if (profile.off_cpu.empty()) return;
  Classifier classifier(profile, symbols);
  for (profile::OffCpuInterval& off : profile.off_cpu) classifier.classify(off);
}

}  // namespace cprof::pipeline
