#include "store/stack_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "profile/frame_name.h"
#include "store/sql_statement.h"

namespace cprof::store {

std::optional<uint32_t> IdRows::find(int64_t id) const {
  if (ids_.empty() || id < ids_.front() || id > ids_.back()) return std::nullopt;
  const auto dense = static_cast<size_t>(id - ids_.front());
  if (dense < ids_.size() && ids_[dense] == id) return static_cast<uint32_t>(dense);
  auto found = std::ranges::lower_bound(ids_, id);
  if (*found != id) return std::nullopt;
  return static_cast<uint32_t>(found - ids_.begin());
}

Result<StackIndex> StackIndex::load(sqlite3* db) {
  StackIndex index;
  TRY(index.load_symbols(db));
  TRY(index.load_frames(db));
  TRY(index.load_sites(db));
  return index;
}

Result<void> StackIndex::load_symbols(sqlite3* db) {
  auto rows = TRY(SqlStatement::prepare(
      db, "SELECT symbol_set_id, id, name, source_file, line_number, inlined FROM stack_profile_symbol "
          "WHERE symbol_set_id IS NOT NULL ORDER BY symbol_set_id, id"));
  while (TRY(rows.step())) {
    if (symbol_sets_.empty() || symbol_sets_.back().first != rows.integer(0))
      symbol_sets_.push_back({rows.integer(0), {static_cast<uint32_t>(lines_.size()), 0}});
    ++symbol_sets_.back().second.second;
    lines_.push_back({strings_.intern(rows.text(2)), strings_.intern(rows.text(3)), rows.integer(1), rows.integer_or(4, -1),
                      rows.integer(5) != 0});
  }
  return {};
}

Result<void> StackIndex::load_frames(sqlite3* db) {
  auto rows = TRY(SqlStatement::prepare(db, "SELECT f.id, f.name, f.symbol_set_id, m.name FROM stack_profile_frame f "
                                            "LEFT JOIN stack_profile_mapping m ON m.id = f.mapping ORDER BY f.id"));
  while (TRY(rows.step())) {
    frame_ids_.add(rows.integer(0));
    Frame frame;
    frame.module = strings_.intern(rows.text(3));
    auto set = std::ranges::lower_bound(symbol_sets_, rows.integer_or(2, INT64_MIN), {},
                                        [](const auto& row) { return row.first; });
    if (!rows.is_null(2) && set != symbol_sets_.end() && set->first == rows.integer(2)) {
      std::tie(frame.first_line, frame.line_count) = set->second;
    } else {
      const std::string_view name = rows.text(1);
      frame.first_line = static_cast<uint32_t>(lines_.size());
      frame.line_count = 1;
      lines_.push_back({strings_.intern(name.empty() ? profile::kUnknownFrame : name), strings_.intern({})});
    }
    frames_.push_back(frame);
  }
  return {};
}

Result<void> StackIndex::load_sites(sqlite3* db) {
  auto rows = TRY(SqlStatement::prepare(db, "SELECT id, parent_id, frame_id FROM stack_profile_callsite ORDER BY id"));
  uint64_t nodes = 0;
  while (TRY(rows.step())) {
    const int64_t id = rows.integer(0);
    const auto frame = frame_ids_.find(rows.integer(2));
    if (!frame) return fail(fmt::format("call site {} names frame {}, which does not exist", id, rows.integer(2)));
    Site site{.frame = *frame, .first_node = static_cast<uint32_t>(nodes)};
    if (!rows.is_null(1)) {
      const auto parent = site_ids_.find(rows.integer(1));
      if (!parent) return fail(fmt::format("call site {} comes before its parent {}", id, rows.integer(1)));
      site.parent = *parent;
    }
    nodes += frames_[*frame].line_count;
    if (nodes >= kNone) return fail("more than 4,294,967,294 frames with their inlined functions");
    site_ids_.add(id);
    sites_.push_back(site);
  }
  node_count_ = static_cast<uint32_t>(nodes);
  return {};
}

uint32_t StackIndex::site_of_node(uint32_t node) const {
  auto next = std::ranges::upper_bound(sites_, node, {}, &Site::first_node);
  return static_cast<uint32_t>(next - sites_.begin()) - 1;
}

}  // namespace cprof::store
