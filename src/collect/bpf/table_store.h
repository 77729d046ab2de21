// Copies unwind tables into the store that the BPF programs read: page indexes, rows and rules. Rules are kept once for
// all modules. Nothing is ever taken back: tables of files stay valid for the whole run. Used by ModuleBook.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "collect/bpf/sampler_maps.h"

namespace cprof::collect {

class TableStore {
 public:
  TableStore(SamplerMaps& maps, Diagnostics& diagnostics) : maps_(maps), diagnostics_(diagnostics) {}

  // What a module has to say to find its rows; base and state are the caller's. Fails when the store is full.
  Result<sampler_module> add(const cp_table& table);
  uint64_t words_used() const { return cursor_; }

 private:
  Result<uint32_t> reserve(uint32_t words);
  Result<void> add_page(const cp_table& table, uint32_t page, std::span<uint32_t> index);
  void add_standing_rules();
  uint32_t rule_index(const cp_rule& rule);
  std::span<uint32_t> words_at(uint32_t at) { return chunks_[at >> SAMPLER_CHUNK_BITS].subspan(at & (SAMPLER_CHUNK_WORDS - 1)); }

  SamplerMaps& maps_;
  Diagnostics& diagnostics_;
  std::vector<std::span<uint32_t>> chunks_;
  uint32_t cursor_ = 0;                             // first free word
  std::unordered_map<uint64_t, uint32_t> rules_;    // a rule's bytes -> its index
  std::vector<uint32_t> renumbered_;                // of the table being added: its index -> ours
  uint32_t empty_from_ = 0;                         // pages from here on have no rows so far
};

}  // namespace cprof::collect
