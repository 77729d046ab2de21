// From what the file's profiles hold to a Profile. The reader hands each profile over when it has all of it; frames may
// come later, so they are numbers until the end. Used by speedscope_reader.cc; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/number_map.h"
#include "base/result.h"
#include "format/speedscope/speedscope_columns.h"
#include "profile/builder.h"

namespace cprof::format {

// One profile of the file, as it stands there.
struct SpeedscopeProfile {
  std::string type, name, unit = "none";
  SpeedscopeValue start, end;
  SpeedscopeColumn<profile::CallSiteId> samples;
  SpeedscopeColumn<SpeedscopeValue> weights;
  SpeedscopeColumn<SpeedscopeEvent> events;
  // Of our own writer: what the format has no place for.
  std::string metric, metric_unit, process, thread;
  int32_t pid = 0, tid = 0;
};

class SpeedscopeBuilder {
 public:
  // The timeline has no more slices than that, the sums are whole.
  static constexpr size_t kMaxSlices = 1'000'000;
  explicit SpeedscopeBuilder(std::string name, size_t max_slices = kMaxSlices);

  // The stack of these frames, root first.
  profile::CallSiteId stack(std::span<const uint32_t> frames);
  Result<void> add_profile(const SpeedscopeProfile& from);
  void add_frame(std::string_view name, std::string_view file, uint32_t line, uint32_t column);  // the next one

  std::string title;  // of the file
  Result<profile::Profile> take();

 private:
  struct Part {  // of one profile of the file
    std::string name, process, thread;
    int32_t pid = 0, tid = 0;
    profile::MetricId metric{};
    std::vector<std::pair<profile::CallSiteId, int64_t>> sums;
    size_t first_slice = 0, end_slice = 0;
  };

  profile::LocationId location(uint32_t frame);
  Result<int64_t> value(SpeedscopeValue v, const SpeedscopeUnit& unit);
  Result<uint64_t> time(SpeedscopeValue v, const SpeedscopeUnit& unit);
  Result<void> add_samples(const SpeedscopeProfile& from, const SpeedscopeUnit& unit);
  Result<void> add_events(const SpeedscopeProfile& from, const SpeedscopeUnit& unit);
  void note_event(std::string_view name, std::string_view text, size_t index);
  void close_event(const SpeedscopeEvent& event, size_t index, uint64_t at);
  void open_frame(profile::LocationId location, uint64_t at, bool is_time);
  void close_frame(uint64_t at);
  void cut_depth();
  void show(profile::CallSiteId site, uint64_t at);
  void add(profile::CallSiteId site, int64_t value);
  profile::MetricId metric(const SpeedscopeProfile& from, const SpeedscopeUnit& unit);
  Result<void> name_frames();
  profile::ThreadId thread(const Part& part, size_t index);
  void give_thread(const Part& part, size_t index);
  void set_run();

  struct Open {
    profile::LocationId location;
    profile::CallSiteId site;
    size_t slice = kNoSlice;
    static constexpr size_t kNoSlice = ~size_t{0};
  };

  profile::ProfileBuilder builder_;
  std::string name_;
  size_t max_slices_, max_depth_ = SIZE_MAX;  // of the slices
  uint64_t slices_cut_ = 0;
  std::vector<Part> parts_;
  std::vector<Open> open_;
  std::vector<uint32_t> open_count_;                     // how often each location is in open_
  std::unordered_map<uint32_t, size_t> sum_of_site_;     // in the last part's sums
  NumberMap<uint32_t, profile::LocationId> locations_;  // by frame
  std::vector<profile::Line> frames_;
  std::vector<profile::LocationId> path_;
  std::map<std::pair<std::string, std::string>, profile::MetricId> metrics_;  // by name and unit
  std::map<std::pair<int32_t, std::string>, profile::ProcessId> processes_;
  std::map<std::pair<profile::ProcessId, int32_t>, profile::ThreadId> threads_;
  uint64_t rounded_ = 0;
};

}  // namespace cprof::format
