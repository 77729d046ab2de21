#include "unwind/cfi/row_builder.h"

#include <algorithm>
#include <cstring>

namespace cprof::unwind {
namespace {

constexpr size_t kRuleLimit = 1 << 20;  // the 20 bits of a row

}  // namespace

RowBuilder::RowBuilder(uint64_t base, uint32_t page_count) : page_count_(page_count), cursor_(base) {
  set_.base = base;
  set_.pages.reserve(page_count + 1);
  index_of(cp_rule{});
}

uint32_t RowBuilder::index_of(const cp_rule& rule) {
  uint64_t key;
  memcpy(&key, &rule, sizeof(key));
  Recent& recent = recent_[(key * 0x9e3779b97f4a7c15ull) >> 56];
  if (recent.key == key) return recent.index;
  auto [it, is_new] = index_.try_emplace(key, static_cast<uint32_t>(set_.rules.size()));
  if (is_new) {
    // A full table cannot happen with real CFI (hosts show about 2,500 rules); the interpreter takes what is over.
    if (set_.rules.size() + 1 == kRuleLimit) {
      cp_rule complex{};
      complex.cfa_kind = CP_CFA_COMPLEX;
      set_.rules.push_back(complex);
    } else if (set_.rules.size() < kRuleLimit) {
      set_.rules.push_back(rule);
    }
    it->second = static_cast<uint32_t>(std::min<size_t>(it->second, kRuleLimit - 1));
  }
  recent = {key, it->second};
  return it->second;
}

void RowBuilder::add(uint64_t start, uint64_t end, const cp_rule& rule) {
  uint64_t limit = set_.base + page_count_ * kPageBytes;
  start = std::max(start, cursor_);
  end = std::min(end, limit);
  if (start >= end) return;
  if (start > cursor_) put(cursor_, 0);
  put(start, index_of(rule));
  cursor_ = end;
}

void RowBuilder::put(uint64_t pc, uint32_t rule) {
  if (rule == last_rule_) return;
  uint64_t offset = pc - set_.base;
  open_pages_to(offset / kPageBytes, true);
  cp_row row = CP_MAKE_ROW(offset % kPageBytes, rule);
  // A page opened just now begins with the rule of the page before, unless this row stands at its very start.
  bool replaces = offset % kPageBytes == 0 && set_.rows.size() > set_.pages.back();
  if (replaces)
    set_.rows.back() = row;
  else
    set_.rows.push_back(row);
  last_rule_ = rule;
}

// A page of which nothing is known needs no row, unless one follows in it.
void RowBuilder::open_pages_to(uint64_t page, bool has_rows) {
  for (; opened_ <= page; opened_++) {
    set_.pages.push_back(static_cast<uint32_t>(set_.rows.size()));
    if (last_rule_ != 0 || (has_rows && opened_ == page)) set_.rows.push_back(CP_MAKE_ROW(0, last_rule_));
  }
}

RowSet RowBuilder::finish() {
  if (page_count_ > 0) {
    if (cursor_ < set_.base + page_count_ * kPageBytes) put(cursor_, 0);
    if (opened_ < page_count_) open_pages_to(page_count_ - 1, false);
  }
  set_.pages.push_back(static_cast<uint32_t>(set_.rows.size()));
  set_.rows.shrink_to_fit();
  return std::move(set_);
}

}  // namespace cprof::unwind
