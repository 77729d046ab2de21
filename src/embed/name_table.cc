#include "embed/name_table.h"

namespace cprof::embed {
namespace {

constexpr size_t kMaxLength = 4096;
constexpr uint32_t kMaxNames = (1u << 24) - 1;

}  // namespace

NameTable::NameTable() {
  names_.emplace_back("");
  add("[names beyond the limit]", kMaxNames);
}

uint32_t NameTable::add(std::string_view text, uint32_t limit) {
  text = text.substr(0, kMaxLength);
  const auto known = ids_.find(text);
  if (known != ids_.end()) return known->second;
  if (names_.size() > limit) {
    refused_++;
    return kTooMany;
  }
  const uint32_t id = static_cast<uint32_t>(names_.size());
  ids_.emplace(names_.emplace_back(text), id);
  return id;
}

uint32_t NameTable::of_site(std::string_view text) {
  std::lock_guard lock(mutex_);
  return add(text, kMaxNames);
}

uint32_t NameTable::of_text(std::string_view text) {
  std::lock_guard lock(mutex_);
  return add(text, kMaxDynamic);
}

std::string NameTable::name(uint32_t id) const {
  std::lock_guard lock(mutex_);
  return id < names_.size() ? names_[id] : std::string("[no name]");
}

uint64_t NameTable::refused() const {
  std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace cprof::embed
