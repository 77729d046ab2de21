// What one packet sequence of a Perfetto trace has interned, and its call stacks as call sites. The first definition of an
// id holds until the state is cleared, and ids are looked up when they are used, so that definitions may come in any
// order inside a packet. Used by the pftrace reader; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>


#include "base/number_map.h"
#include "format/pftrace/proto_fields.h"
#include "profile/builder.h"

namespace cprof::format {

struct SampleTask {
  int32_t pid = 0, tid = 0;
};
struct SampleExecution {
  uint32_t cpu = 0;
  bool in_kernel = false;
};

// Locations of a trace by what they say, so that a stack that is interned anew (after the state was cleared, or by another
// sequence) is the old one. One for all sequences.
class TraceLocations {
 public:
  explicit TraceLocations(profile::ProfileBuilder& builder) : builder_(builder) {}

  struct Key {
    profile::MappingId mapping{};
    uint64_t address = 0;
    profile::FrameKind kind = profile::FrameKind::kUser;
    std::vector<std::pair<profile::FunctionId, uint32_t>> lines;  // innermost first
    auto operator<=>(const Key&) const = default;
  };
  profile::LocationId location(const Key& key);
  profile::ProfileBuilder& builder() { return builder_; }

 private:
  profile::ProfileBuilder& builder_;
  std::map<Key, profile::LocationId> locations_;
};

struct TraceStack {
  profile::CallSiteId site{};
  bool is_cut = false;     // began with "[truncated]"
  bool is_broken = false;  // an id leads nowhere
};

class InternedState {
 public:
  explicit InternedState(TraceLocations& locations) : locations_(locations) {}

  void add(ProtoFields interned);
  void clear();

  // Nothing when the id is not defined.
  std::optional<StringId> text(uint32_t field, uint64_t iid) const;
  TraceStack stack(uint64_t iid);
  TraceStack inline_stack(ProtoFields callstack);
  SampleTask task(uint64_t iid) const;
  SampleExecution execution(uint64_t iid) const;
  StringId counter(uint64_t iid) const;

  static SampleTask read_task(ProtoFields fields, uint64_t& iid);
  static SampleExecution read_execution(ProtoFields fields, uint64_t& iid);

 private:
  struct Mapping {
    uint64_t build_id = 0, start = 0, end = 0, load_bias = 0, exact_offset = 0;
    std::vector<uint64_t> path;
    profile::MappingId made{};
    bool is_made = false, is_made_up = false;
  };
  struct Frame {
    uint64_t name = 0, mapping = 0, rel_pc = 0, source = 0;
    uint32_t line = 0, kind = 0;
  };
  struct Callstack {
    std::vector<uint64_t> frames;
    TraceStack made;
    bool is_made = false;
  };

  void add_text(uint32_t field, ProtoFields fields);
  void add_mapping(ProtoFields fields);
  void add_frame(ProtoFields fields);
  void add_callstack(ProtoFields fields);
  TraceStack make_stack(const std::vector<uint64_t>& frames);
  profile::LocationId make_location(std::span<const Frame* const> outermost_first);
  const Mapping* mapping(uint64_t iid);
  std::string_view name_of(const Frame& frame) const;

  TraceLocations& locations_;
  std::map<uint32_t, NumberMap<uint64_t, StringId>> texts_;  // by field
  NumberMap<uint64_t, Mapping> mappings_;
  NumberMap<uint64_t, Frame> frames_;
  NumberMap<uint64_t, Callstack> callstacks_;
  NumberMap<uint64_t, SampleTask> tasks_;
  NumberMap<uint64_t, SampleExecution> executions_;
  NumberMap<uint64_t, StringId> counters_;
};

}  // namespace cprof::format
