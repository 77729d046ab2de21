// The profiles that one session asks, side by side: each keeps its own rows, ids run on from one to the next. What is
// worked out from a profile (slices, states, sums by stack) is made when it is first asked for. Used by QuerySession
// and its tables; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/frames.h"
#include "profile/profile.h"

namespace cprof::store {

// Values of one (metric, call site, labels).
struct AggregateRow {
  uint32_t metric = 0, site = 0;  // site: the profile's number of sites stands for [unknown]
  profile::LabelSetId labels{};
  int64_t value = 0;
};

struct FrameSliceRow {
  static constexpr uint32_t kNoParent = 0xffffffff;
  uint64_t start_ns = 0, end_ns = 0;
  uint32_t thread = 0, depth = 0;
  uint32_t parent = kNoParent;  // row
  profile::LocationId location{};
  uint16_t line = 0;
};

struct OffCpuRow {
  uint32_t interval = 0;
  bool is_runnable = false;  // the part after the wait
};

struct StateRow {
  uint64_t start_ns = 0, end_ns = 0;
  uint32_t interval = 0;  // of on_cpu when running, else of the rows of off_cpu
  bool is_running = false;
};

// What is known of the run: a number, a text, or both.
struct FactRow {
  std::string_view name, type = "single";
  std::optional<int64_t> number = {};
  std::optional<std::string_view> text = {};
};

struct LossRow {
  std::string_view name;
  const Diagnostic* loss = nullptr;
};

struct ArgumentRow {
  uint32_t set = 0, label = 0;
  std::string number_text;  // of a number
};

class ProfileSource {
 public:
  // What the ids of its rows begin with: the number of rows that the profiles before it have.
  struct Bases {
    int64_t process = 0, thread = 0, mapping = 0, frame = 0, site = 0, symbol = 0, metric = 0, label_set = 0, track = 0;
  };

  // before: the profile that comes before it, or null.
  ProfileSource(std::shared_ptr<const profile::Profile> profile, std::string scope, ProfileSource* before);
  ProfileSource(const ProfileSource&) = delete;
  ProfileSource& operator=(const ProfileSource&) = delete;

  const profile::Profile& profile() const { return profile_; }
  std::string_view scope() const { return scope_; }
  const Bases& bases() const { return bases_; }
  int64_t first_slice();  // like the bases, but only known once the slices before it are made

  uint32_t mapping_count() const { return static_cast<uint32_t>(profile_.mappings.size() + has_unmapped_); }
  uint32_t frame_count() const { return static_cast<uint32_t>(profile_.locations.size() + has_unknown_); }
  uint32_t site_count() const { return static_cast<uint32_t>(profile_.sites.size() + has_unknown_); }
  uint32_t symbol_count() const { return first_symbol_.back(); }
  uint32_t own_track_count() const { return static_cast<uint32_t>(profile_.threads.size() + profile_.tracks.size()); }
  uint32_t track_count() const;  // with a lane of frames for each thread when there are samples

  uint32_t first_symbol(uint32_t location) const { return first_symbol_[location]; }
  uint32_t location_of_symbol(uint32_t symbol) const;
  bool is_counter(uint32_t track) const { return is_counter_[track]; }
  std::string_view metric_name(uint32_t metric) const { return metric_names_[metric]; }  // "pprof cpu"
  std::string_view container(uint32_t process) const { return containers_[process]; }          // "": none
  std::string_view frame_name(profile::LocationId location, uint16_t line) {
    return walker_.frame(location, line).name;
  }

  int64_t site_id(profile::CallSiteId site) const {
    return bases_.site + (site.valid() ? site.value : static_cast<int64_t>(profile_.sites.size()));
  }

  const std::vector<AggregateRow>& aggregates();
  uint32_t slice_count();
  const std::vector<FrameSliceRow>& frame_slices();
  const std::vector<std::optional<int64_t>>& own_slice_parents();
  const std::vector<OffCpuRow>& off_cpu();
  const std::vector<StateRow>& states();
  const std::vector<ArgumentRow>& arguments();
  const std::vector<FactRow>& facts();
  const std::vector<LossRow>& losses();

 private:
  Bases next_bases() const;
  std::vector<AggregateRow> make_aggregates() const;
  std::vector<FrameSliceRow> make_frame_slices() const;

  std::shared_ptr<const profile::Profile> held_;
  const profile::Profile& profile_;
  std::string scope_;
  ProfileSource* before_;
  Bases bases_;
  bool has_unmapped_ = false, has_unknown_ = false;
  std::vector<uint32_t> first_symbol_;  // by location, and one more
  std::vector<bool> is_counter_;        // by track
  std::vector<std::string> metric_names_;
  std::vector<std::string> containers_;  // by process
  analyze::FrameWalker walker_;
  std::optional<std::vector<AggregateRow>> aggregates_;
  std::optional<std::vector<FrameSliceRow>> frame_slices_;
  std::optional<std::vector<std::optional<int64_t>>> slice_parents_;
  std::optional<std::vector<OffCpuRow>> off_cpu_;
  std::optional<std::vector<StateRow>> states_;
  std::optional<std::vector<ArgumentRow>> arguments_;
  std::optional<std::vector<FactRow>> facts_;
  std::optional<std::vector<LossRow>> losses_;
};

class ProfileSet {
 public:
  // The scope is the name, with " (2)", " (3)" behind it when that is taken.
  void add(std::shared_ptr<const profile::Profile> profile, std::string_view name);
  const std::vector<std::unique_ptr<ProfileSource>>& sources() const { return sources_; }

 private:
  std::vector<std::unique_ptr<ProfileSource>> sources_;
  std::set<std::string, std::less<>> scopes_;
};

}  // namespace cprof::store
