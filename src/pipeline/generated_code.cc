#include "pipeline/generated_code.h"

#include <algorithm>

namespace cprof::pipeline {
namespace {

constexpr std::string_view kPrefix = "bpf_";

}  // namespace

// What begins before keeps its part: of code from kallsyms only the beginning is known.
void GeneratedCode::cut(uint64_t start, uint64_t end) {
  auto at = by_start_.lower_bound(start);
  if (at != by_start_.begin()) std::prev(at)->second.end = std::min(std::prev(at)->second.end, start);
  while (at != by_start_.end() && at->first < end) at = by_start_.erase(at);
}

void GeneratedCode::insert(Code code) {
  code.serial = next_serial_++;
  by_start_[code.start] = std::move(code);
}

bool GeneratedCode::apply(const event::KernelSymbol& symbol) {
  const uint64_t end = symbol.start + symbol.length;
  if (end <= symbol.start || !symbol.name.starts_with(kPrefix)) return false;
  const Code* known = find(symbol.start);
  if (known && !symbol.is_removed && known->start == symbol.start && known->end == end && known->name == symbol.name) return false;
  cut(symbol.start, end);
  if (!symbol.is_removed) insert({symbol.start, end, std::string(symbol.name), true, 0});
  return true;
}

void GeneratedCode::add(const std::vector<object::GeneratedSymbol>& symbols) {
  for (const object::GeneratedSymbol& symbol : symbols) {
    const Code* known = find(symbol.start);
    if (known && known->start == symbol.start && known->name == symbol.name) continue;
    cut(symbol.start, symbol.end);
    insert({symbol.start, symbol.end, symbol.name, false, 0});
  }
}

GeneratedCode::Code* GeneratedCode::find(uint64_t address) {
  auto after = by_start_.upper_bound(address);
  if (after == by_start_.begin()) return nullptr;
  Code& code = std::prev(after)->second;
  return address < code.end ? &code : nullptr;
}

std::string path_of_generated(std::string_view name) { return "[" + std::string(name) + "]"; }

std::string_view generated_name(std::string_view path) {
  const bool is_generated = path.starts_with('[') && path.ends_with(']') && path.substr(1).starts_with(kPrefix);
  return is_generated ? path.substr(1, path.size() - 2) : std::string_view();
}

bool is_generated_path(std::string_view path) { return path == object::kGeneratedCode || !generated_name(path).empty(); }

}  // namespace cprof::pipeline
