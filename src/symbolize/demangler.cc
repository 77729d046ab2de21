#include <unordered_map>

#include "base/string_table.h"
#include "symbolize/itanium.h"
#include "symbolize/rust_names.h"
#include "symbolize/symbolizer.h"

namespace cprof::symbolize {
namespace {

constexpr size_t kMaxName = 64 << 10;
constexpr size_t kMaxCachedOutput = 256 << 20;  // a file of hostile names must not fill the memory name by name

std::optional<std::string> demangle_any(std::string_view name, bool short_form) {
  if (name.starts_with("_R")) return demangle_rust_v0(name, short_form);
  if (!name.starts_with("_Z") && !name.starts_with("___Z")) return std::nullopt;
  if (auto rust = demangle_rust_legacy(name)) return short_form ? shorten_name(*rust) : *rust;
  return demangle_itanium(name, short_form);
}

}  // namespace

struct Demangler::Impl {
  DemangleStyle style;
  StringTable texts;
  std::unordered_map<uint32_t, std::string_view> results;  // by the mangled name's id
  size_t output_bytes = 0;
};

Demangler::Demangler(DemangleStyle style) : impl_(std::make_unique<Impl>(Impl{style, {}, {}, 0})) {}
Demangler::~Demangler() = default;

std::string_view Demangler::demangle(std::string_view name) {
  StringId id = impl_->texts.intern(name);
  if (impl_->style == DemangleStyle::kNone || name.size() > kMaxName || name.size() < 3) return impl_->texts[id];
  auto [place, fresh] = impl_->results.try_emplace(id.value);
  if (!fresh) return place->second;

  // "callee@plt": the mark is ours or the linker's, not part of the mangling.
  std::string_view mark = name.substr(std::min(name.find('@'), name.size()));
  auto text = impl_->output_bytes < kMaxCachedOutput
                  ? demangle_any(name.substr(0, name.size() - mark.size()), impl_->style == DemangleStyle::kShort)
                  : std::nullopt;
  if (!text) return place->second = impl_->texts[id];
  text->append(mark);
  impl_->output_bytes += text->size();
  return place->second = impl_->texts[impl_->texts.intern(*text)];
}

}  // namespace cprof::symbolize
