// Turns (pc range, rule) pairs, in pc order, into rows grouped by page and a table of distinct rules. Caller: the table
// compiler.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "unwind/core/unwind_rows.h"

namespace cprof::unwind {

constexpr uint64_t kPageBytes = 1 << CP_PAGE_BITS;

struct RowSet {
  uint64_t base = 0;            // address of page 0
  std::vector<cp_row> rows;
  std::vector<uint32_t> pages;  // page count + 1
  std::vector<cp_rule> rules;   // rules[0] is CP_CFA_NONE
};

class RowBuilder {
 public:
  RowBuilder(uint64_t base, uint32_t page_count);

  // Ranges must not go back; what is not covered is CP_CFA_NONE. An empty range adds nothing.
  void add(uint64_t start, uint64_t end, const cp_rule& rule);
  RowSet finish();

 private:
  uint32_t index_of(const cp_rule& rule);
  void put(uint64_t pc, uint32_t rule);
  void open_pages_to(uint64_t page, bool has_rows);

  RowSet set_;
  uint32_t page_count_;
  uint64_t cursor_;             // end of the last range
  uint64_t opened_ = 0;         // pages that have their first row's index
  uint32_t last_rule_ = 0;
  std::unordered_map<uint64_t, uint32_t> index_;
  struct Recent { uint64_t key = ~uint64_t{0}; uint32_t index = 0; };
  std::array<Recent, 256> recent_{};  // in front of index_: a few rules make up nearly all rows
};

}  // namespace cprof::unwind
