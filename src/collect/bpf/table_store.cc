// A page's rows may not cross a chunk's end. Where they would, the rest of the chunk is filled with the last row of the
// page before, which so keeps its meaning, and pages without rows move along.
#include "collect/bpf/table_store.h"

#include <algorithm>
#include <bit>

namespace cprof::collect {
namespace {

constexpr uint32_t kNoRule = 0, kComplexRule = 1;  // places of the rules that are always there
constexpr uint32_t kMaxWords = SAMPLER_MAX_CHUNKS * SAMPLER_CHUNK_WORDS;

uint32_t room_in_chunk(uint32_t at) { return SAMPLER_CHUNK_WORDS - (at & (SAMPLER_CHUNK_WORDS - 1)); }

}  // namespace

uint32_t TableStore::rule_index(const cp_rule& rule) {
  auto [it, is_new] = rules_.try_emplace(std::bit_cast<uint64_t>(rule), static_cast<uint32_t>(rules_.size()));
  if (!is_new) return it->second;
  if (it->second < maps_.rules().size()) {
    maps_.rules()[it->second] = rule;
    return it->second;
  }
  rules_.erase(it);
  diagnostics_.add("bpf_rules_full", Severity::kNotice,
                   "unwind rules beyond what the BPF program holds; stacks through them are unwound from snapshots");
  return kComplexRule;
}

// words in a row within one chunk; gives the first.
Result<uint32_t> TableStore::reserve(uint32_t words) {
  if (words > SAMPLER_CHUNK_WORDS) return fail("an unwind table with more pages than the BPF program can hold", E2BIG);
  if (room_in_chunk(cursor_) < words) cursor_ += room_in_chunk(cursor_);
  if (uint64_t{cursor_} + words > kMaxWords) return fail("the BPF program's store of unwind tables is full", ENOSPC);
  while (chunks_.size() * SAMPLER_CHUNK_WORDS < uint64_t{cursor_} + words) chunks_.push_back(TRY(maps_.add_chunk()));
  uint32_t at = cursor_;
  cursor_ += words;
  return at;
}

Result<void> TableStore::add_page(const cp_table& table, uint32_t page, std::span<uint32_t> index) {
  uint32_t from = table.pages[page], to = table.pages[page + 1];
  uint32_t before = cursor_;
  if (to <= from) {
    index[page] = index[page + 1] = cursor_;
    return {};
  }
  uint32_t at = TRY(reserve(to - from));
  if (at != before) {
    // Rows filled in take part in the search of the page before: more rows like its last change nothing.
    if (empty_from_ > 0) std::ranges::fill(words_at(before).first(at - before), words_at(before - 1)[0]);
    for (uint32_t empty = empty_from_; empty < page; empty++) index[empty] = at;
  }
  std::span<uint32_t> rows = words_at(at);
  for (uint32_t i = from; i < to; i++) {
    uint32_t rule = CP_ROW_RULE(table.rows[i]);
    rows[i - from] = CP_MAKE_ROW(CP_ROW_PC(table.rows[i]), rule < renumbered_.size() ? renumbered_[rule] : kNoRule);
  }
  index[page] = at;
  index[page + 1] = cursor_;
  empty_from_ = page + 1;
  return {};
}

void TableStore::add_standing_rules() {
  cp_rule complex{};
  complex.cfa_kind = CP_CFA_COMPLEX;
  CPROF_CHECK(rule_index({}) == kNoRule && rule_index(complex) == kComplexRule);
}

Result<sampler_module> TableStore::add(const cp_table& table) {
  if (rules_.empty()) add_standing_rules();
  renumbered_.clear();
  for (uint32_t i = 0; i < table.rule_count; i++) renumbered_.push_back(rule_index(table.rules[i]));
  sampler_module module{};
  module.page_count = table.page_count;
  module.pages_at = TRY(reserve(table.page_count + 1));
  std::span<uint32_t> index = words_at(module.pages_at).first(table.page_count + 1);
  std::ranges::fill(index, cursor_);
  empty_from_ = 0;
  for (uint32_t page = 0; page < table.page_count; page++) TRY(add_page(table, page, index));
  return module;
}

}  // namespace cprof::collect
