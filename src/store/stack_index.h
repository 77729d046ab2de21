// The stacks of all profiles of a session as one forest of plain columns: what the functions and tables that walk
// stacks work on. Made on first use. Ids are those of the tables stack_profile_*: a call site's id is its row here. One
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/string_table.h"
#include "store/profile_set.h"

namespace cprof::store {

class StackIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  struct Line {  // an inlined or real function of a frame
    StringId name, file;
    int64_t symbol_id = -1;  // -1: the frame has no name
    uint32_t number = 0;     // 0 unknown
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

  static Result<StackIndex> of(const ProfileSet& profiles);

  const std::vector<Site>& sites() const { return sites_; }  // a parent always comes before its children
  std::optional<uint32_t> site(int64_t callsite_id) const {
    if (callsite_id < 0 || callsite_id >= static_cast<int64_t>(sites_.size())) return std::nullopt;
    return static_cast<uint32_t>(callsite_id);
  }
  const Frame& frame_of(uint32_t site) const { return frames_[sites_[site].frame]; }
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
  void add_frames(const ProfileSource& source);
  void add_unnamed(const ProfileSource& source, const profile::Location& location);
  Result<void> add_sites(const ProfileSource& source);

  StringTable strings_;
  std::vector<Site> sites_;
  std::vector<Frame> frames_;
  std::vector<Line> lines_;
  uint32_t node_count_ = 0;
};

// The index of a session's profiles, made when it is first asked for.
class StackIndexCache {
 public:
  explicit StackIndexCache(const ProfileSet& profiles) : profiles_(profiles) {}
  Result<const StackIndex*> get() {
    if (!index_) index_ = TRY(StackIndex::of(profiles_));
    return &*index_;
  }

 private:
  const ProfileSet& profiles_;
  std::optional<StackIndex> index_;
};

}  // namespace cprof::store
