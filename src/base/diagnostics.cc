#include "base/diagnostics.h"

namespace cprof {

void Diagnostics::add(std::string_view name, Severity severity, std::string_view description, uint64_t count,
                      std::string_view example) {
  auto it = entries_.find(name);
  if (it == entries_.end())
    it = entries_.emplace(std::string(name), Diagnostic{severity, 0, std::string(description), std::string(example)}).first;
  it->second.count += count;
}

uint64_t Diagnostics::count(std::string_view name) const {
  auto it = entries_.find(name);
  return it == entries_.end() ? 0 : it->second.count;
}

void Diagnostics::merge(const Diagnostics& other) {
  for (const auto& [name, entry] : other.entries_)
    add(name, entry.severity, entry.description, entry.count, entry.example);
}

}  // namespace cprof
