// The stack tables (stack_profile_callsite, _frame, _symbol, _mapping) of a database as plain columns: what the functions
// and tables that walk stacks work on. Built on first use, after which a step to the caller is one look-up. One thread.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/string_table.h"

namespace cprof::store {

// Rows by an id that counts up from somewhere, with or without holes.
class IdRows {
 public:
  void add(int64_t id) { ids_.push_back(id); }  // ascending
  size_t size() const { return ids_.size(); }
  int64_t id(size_t row) const { return ids_[row]; }
  std::optional<uint32_t> find(int64_t id) const;

 private:
  std::vector<int64_t> ids_;
};

class StackIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  struct Line {  // an inlined or real function of a frame
    StringId name, file;
    int64_t symbol_id = -1;  // -1: the frame has no symbols
    int64_t number = -1;
    bool is_inlined = false;
  };
  struct Frame {
    uint32_t first_line = 0, line_count = 0;  // in lines, innermost first; never none
    StringId module;                          // the mapping's name
  };
  struct Site {
    uint32_t parent = kNone, frame = 0;
    uint32_t first_node = 0;  // of its nodes: one for each line of its frame, innermost first
  };

  static Result<StackIndex> load(sqlite3* db);

  const std::vector<Site>& sites() const { return sites_; }  // a parent always comes before its children
  std::optional<uint32_t> site(int64_t callsite_id) const { return site_ids_.find(callsite_id); }
  int64_t callsite_id(uint32_t site) const { return site_ids_.id(site); }
  const Frame& frame_of(uint32_t site) const { return frames_[sites_[site].frame]; }
  int64_t frame_id(uint32_t site) const { return frame_ids_.id(sites_[site].frame); }
  std::span<const Line> lines_of(uint32_t site) const {
    return std::span(lines_).subspan(frame_of(site).first_line, frame_of(site).line_count);
  }
  std::string_view text(StringId id) const { return strings_[id]; }
  size_t string_count() const { return strings_.size(); }

  // Nodes: the call tree with inlined functions as nodes of their own.
  uint32_t node_count() const { return node_count_; }
  uint32_t site_of_node(uint32_t node) const;
  uint32_t parent_of(uint32_t site, uint32_t line) const {
    if (line + 1 < frame_of(site).line_count) return sites_[site].first_node + line + 1;
    return sites_[site].parent == kNone ? kNone : sites_[sites_[site].parent].first_node;
  }

 private:
  Result<void> load_symbols(sqlite3* db);
  Result<void> load_frames(sqlite3* db);
  Result<void> load_sites(sqlite3* db);

  StringTable strings_;
  std::vector<Site> sites_;
  std::vector<Frame> frames_;
  std::vector<Line> lines_;
  std::vector<std::pair<int64_t, std::pair<uint32_t, uint32_t>>> symbol_sets_;  // id -> [first, count) in lines_, sorted
  IdRows site_ids_, frame_ids_;
  uint32_t node_count_ = 0;
};

// The index of a database, made when it is first asked for.
class StackIndexCache {
 public:
  explicit StackIndexCache(sqlite3* db) : db_(db) {}
  Result<const StackIndex*> get() {
    if (!index_) index_ = TRY(StackIndex::load(db_));
    return &*index_;
  }
  void forget() { index_.reset(); }  // the tables have changed

 private:
  sqlite3* db_;
  std::optional<StackIndex> index_;
};

}  // namespace cprof::store
