// Both kinds of profile become the same: a sum for each stack, exact whatever the timeline makes of gaps, and, where the
// unit is a time, one slice for each frame as long as it stays on the stack. A location's address and a slice's name are
// the number of its frame until name_frames().
#include "format/speedscope/speedscope_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/values.h"

namespace cprof::format {

using profile::CallSiteId;
using profile::LocationId;

SpeedscopeBuilder::SpeedscopeBuilder(std::string name, size_t max_slices) : name_(std::move(name)), max_slices_(max_slices) {
  builder_.profile().run.source = name_;
}

LocationId SpeedscopeBuilder::location(uint32_t frame) {
  auto [it, is_new] = locations_.try_emplace(frame);
  const uint64_t address = uint64_t{frame} + 1;
  if (is_new) it->second = builder_.add_location({.address = address, .file_address = address}, {});
  return it->second;
}

CallSiteId SpeedscopeBuilder::stack(std::span<const uint32_t> frames) {
  path_.clear();
  for (uint32_t frame : frames) path_.push_back(location(frame));
  return builder_.stack(path_);
}

Result<int64_t> SpeedscopeBuilder::value(SpeedscopeValue v, const SpeedscopeUnit& unit) {
  auto result = in_unit(v, unit, rounded_);
  if (!result) return fail("a value that 64 bits do not hold");
  return *result;
}

Result<uint64_t> SpeedscopeBuilder::time(SpeedscopeValue v, const SpeedscopeUnit& unit) {
  const int64_t result = TRY(value(v, unit));
  if (result < 0 && unit.is_time) return fail("a time before 0");
  return static_cast<uint64_t>(result);
}

profile::MetricId SpeedscopeBuilder::metric(const SpeedscopeProfile& from, const SpeedscopeUnit& unit) {
  const std::string_view name = from.metric.empty() ? unit.metric : std::string_view(from.metric);
  const std::string_view unit_name = from.metric_unit.empty() ? unit.unit : std::string_view(from.metric_unit);
  auto [it, is_new] = metrics_.try_emplace({std::string(name), std::string(unit_name)});
  if (is_new) it->second = builder_.add_metric(name, unit_name);
  return it->second;
}

void SpeedscopeBuilder::add(CallSiteId site, int64_t value) {
  auto& sums = parts_.back().sums;
  auto [it, is_new] = sum_of_site_.try_emplace(site.value, sums.size());
  if (is_new) sums.emplace_back(site, 0);
  sums[it->second].second = add_clamped(sums[it->second].second, value);
}

Result<void> SpeedscopeBuilder::add_profile(const SpeedscopeProfile& from) {
  const SpeedscopeUnit& unit = speedscope_unit(from.unit);
  if (!is_speedscope_unit(from.unit))
    builder_.profile().diagnostics.add("speedscope_unknown_units", Severity::kError,
                                       "values of a unit that the format does not have are taken as plain numbers", 1,
                                       from.unit);
  auto& slices = builder_.profile().slices;
  parts_.push_back({.name = from.name, .process = from.process, .thread = from.thread, .pid = from.pid, .tid = from.tid,
                    .metric = metric(from, unit), .sums = {}, .first_slice = slices.size(), .end_slice = 0});
  sum_of_site_.clear();
  open_.clear();
  if (from.type == "sampled")
    TRY(add_samples(from, unit));
  else if (from.type == "evented")
    TRY(add_events(from, unit));
  else
    return fail(fmt::format("profile {} is neither sampled nor evented but \"{}\"", parts_.size(), from.type));
  parts_.back().end_slice = slices.size();
  return {};
}

// Which frames go on from the stack before: slices of the others end, slices of new ones begin.
void SpeedscopeBuilder::show(CallSiteId site, uint64_t at) {
  const auto& sites = builder_.profile().sites;
  path_.clear();
  for (CallSiteId s = site; s.valid(); s = sites[s.index()].parent) path_.push_back(sites[s.index()].location);
  std::ranges::reverse(path_);
  size_t shared = 0;
  while (shared < open_.size() && shared < path_.size() && open_[shared].location == path_[shared]) ++shared;
  while (open_.size() > shared) close_frame(at);
  for (size_t i = shared; i < path_.size(); ++i) open_frame(path_[i], at, true);
}

Result<void> SpeedscopeBuilder::add_samples(const SpeedscopeProfile& from, const SpeedscopeUnit& unit) {
  if (from.samples.size() != from.weights.size())
    return fail(fmt::format("profile {} has {} samples and {} weights", parts_.size(), from.samples.size(),
                            from.weights.size()));
  uint64_t at = TRY(time(from.start, unit));
  SpeedscopeColumn<CallSiteId>::Cursor samples(from.samples);
  SpeedscopeColumn<SpeedscopeValue>::Cursor weights(from.weights);
  for (size_t i = 0; i < from.samples.size(); ++i) {
    const CallSiteId site = samples.next();
    const int64_t weight = TRY(value(weights.next(), unit));
    if (site.valid() || !unit.is_time) add(site, weight);  // no stack for a time: nothing ran
    if (!unit.is_time || weight <= 0) continue;
    if (static_cast<uint64_t>(weight) > INT64_MAX - at) return fail("times that 64 bits do not hold");
    show(site, at);
    at += static_cast<uint64_t>(weight);
  }
  while (!open_.empty()) close_frame(at);
  return {};
}

void SpeedscopeBuilder::open_frame(LocationId location, uint64_t at, bool is_time) {
  Open open{.location = location, .site = {}};
  auto& slices = builder_.profile().slices;
  if (is_time && slices.size() == max_slices_ && max_depth_ > 1) cut_depth();
  if (is_time && open_.size() < max_depth_ && slices.size() < max_slices_) {
    open.slice = slices.size();
    slices.push_back({.name = StringId(location.value), .start_ns = at, .depth = static_cast<uint32_t>(open_.size())});
  } else if (is_time) {
    ++slices_cut_;
  }
  open_.push_back(open);
  if (location.index() >= open_count_.size()) open_count_.resize(location.index() + 1);
  ++open_count_[location.index()];
}

// The deepest slices of all profiles go, until half of the room is free again: every thread stays on the timeline for as long
// as it ran. One row always stays.
void SpeedscopeBuilder::cut_depth() {
  auto& slices = builder_.profile().slices;
  std::vector<size_t> at_depth;
  for (const profile::Slice& slice : slices) {
    if (slice.depth >= at_depth.size()) at_depth.resize(slice.depth + 1);
    ++at_depth[slice.depth];
  }
  size_t depth = 1;
  for (size_t kept = at_depth[0]; depth < at_depth.size() && kept + at_depth[depth] <= max_slices_ / 2; ++depth)
    kept += at_depth[depth];
  max_depth_ = std::min(max_depth_, depth);
  std::vector<size_t> moved;  // where each goes, and what follows the last
  moved.reserve(slices.size() + 1);
  size_t kept = 0;
  for (const profile::Slice& slice : slices) {
    moved.push_back(kept);
    kept += slice.depth < max_depth_;
  }
  moved.push_back(kept);
  slices_cut_ += slices.size() - kept;
  for (Part& part : parts_) {
    part.first_slice = moved[part.first_slice];
    part.end_slice = moved[part.end_slice];
  }
  for (size_t i = 0; i < open_.size(); ++i)
    if (open_[i].slice != Open::kNoSlice) open_[i].slice = i < max_depth_ ? moved[open_[i].slice] : Open::kNoSlice;
  std::erase_if(slices, [&](const profile::Slice& slice) { return slice.depth >= max_depth_; });
}

void SpeedscopeBuilder::close_frame(uint64_t at) {
  if (open_.back().slice != Open::kNoSlice) {
    profile::Slice& slice = builder_.profile().slices[open_.back().slice];
    slice.duration_ns = at - slice.start_ns;
  }
  --open_count_[open_.back().location.index()];
  open_.pop_back();
}

void SpeedscopeBuilder::note_event(std::string_view name, std::string_view text, size_t index) {
  builder_.profile().diagnostics.add(name, Severity::kError, text, 1, fmt::format("event {} of profile {}", index, parts_.size()));
}

// Exporters that round times put the close of a frame before those of the frames that it called: all of them end with it.
void SpeedscopeBuilder::close_event(const SpeedscopeEvent& event, size_t index, uint64_t at) {
  const LocationId closed = location(event.frame);
  if (closed.index() >= open_count_.size() || open_count_[closed.index()] == 0)
    return note_event("speedscope_unmatched_closes", "events that close a frame which is not open were left out", index);
  if (open_.back().location != closed)
    note_event("speedscope_closes_not_nested", "frames above one that an event closed were closed with it", index);
  while (open_.back().location != closed) close_frame(at);
  close_frame(at);
}

Result<void> SpeedscopeBuilder::add_events(const SpeedscopeProfile& from, const SpeedscopeUnit& unit) {
  int64_t last = TRY(value(from.start, unit));
  const auto pass = [&](int64_t now) {
    if (!open_.empty() && now > last) add(open_.back().site, now - last);
    last = now;
  };
  SpeedscopeColumn<SpeedscopeEvent>::Cursor events(from.events);
  for (size_t i = 0; i < from.events.size(); ++i) {
    const SpeedscopeEvent event = events.next();
    auto now = static_cast<int64_t>(TRY(time(event.at, unit)));
    if (now < last && i > 0) {
      note_event("speedscope_times_back", "events before the one in front of them count at its time", i);
      now = last;
    }
    pass(now);
    if (event.is_open) {
      const CallSiteId parent = open_.empty() ? CallSiteId() : open_.back().site;
      const LocationId here = location(event.frame);
      open_frame(here, static_cast<uint64_t>(now), unit.is_time);
      open_.back().site = builder_.site(parent, here);
    } else {
      close_event(event, i, static_cast<uint64_t>(now));
    }
  }
  if (open_.empty()) return {};
  builder_.profile().diagnostics.add("speedscope_open_frames", Severity::kError,
                                     "frames that no event closes end with their profile", open_.size());
  pass(std::max(last, TRY(value(from.end, unit))));
  while (!open_.empty()) close_frame(static_cast<uint64_t>(last));
  return {};
}

void SpeedscopeBuilder::add_frame(std::string_view name, std::string_view file, uint32_t line, uint32_t column) {
  const StringId text = builder_.intern(name);
  frames_.push_back({builder_.function({.name = text, .system_name = text, .file = builder_.intern(file)}), line, column});
}

Result<void> SpeedscopeBuilder::name_frames() {
  profile::Profile& p = builder_.profile();
  for (size_t i = 0; i < p.locations.size(); ++i) {
    const uint64_t frame = p.locations[i].address - 1;
    if (frame >= frames_.size())
      return fail(fmt::format("{}: frame {} is used, the file has {}", name_, frame, frames_.size()));
    builder_.set_lines(LocationId(i), {&frames_[frame], 1});
  }
  const StringId category = builder_.intern("function");
  for (profile::Slice& slice : p.slices) {
    const profile::Line& line = p.lines_of(LocationId(slice.name.value))[0];
    slice.name = p.functions[line.function.index()].name;
    slice.category = category;
  }
  return {};
}

// Profiles of one file are told apart as threads; a single one needs none.
profile::ThreadId SpeedscopeBuilder::thread(const Part& part, size_t index) {
  const bool is_told = part.tid != 0;
  if (!is_told && parts_.size() == 1) return {};
  const std::string& process_name = is_told ? part.process : title;
  auto [process, is_new_process] = processes_.try_emplace({part.pid, process_name});
  if (is_new_process) process->second = builder_.add_process(part.pid, process_name);
  const int32_t tid = is_told ? part.tid : static_cast<int32_t>(index + 1);
  auto [row, is_new] = threads_.try_emplace({process->second, tid});
  if (is_new) row->second = builder_.add_thread(process->second, tid, is_told ? part.thread : part.name);
  return row->second;
}

void SpeedscopeBuilder::give_thread(const Part& part, size_t index) {
  profile::Profile& p = builder_.profile();
  const profile::ThreadId owner = thread(part, index);
  profile::TrackId track;  // of slices that have no thread
  if (!owner.valid() && part.end_slice > part.first_slice) {
    track = profile::TrackId(p.tracks.size());
    p.tracks.push_back({.name = builder_.intern(part.name)});
  }
  for (size_t i = part.first_slice; i < part.end_slice; ++i) {
    p.slices[i].thread = owner;
    p.slices[i].track = track;
  }
  for (const auto& [site, value] : part.sums)
    builder_.add_aggregate({.site = site, .metric = part.metric, .value = value, .thread = owner});
}

void SpeedscopeBuilder::set_run() {
  profile::Profile& p = builder_.profile();
  p.run.default_metric = p.metrics[parts_[0].metric.index()].name;
  if (p.slices.empty()) return;
  p.run.start_ns = UINT64_MAX;
  for (const profile::Slice& slice : p.slices) {
    p.run.start_ns = std::min(p.run.start_ns, slice.start_ns);
    p.run.end_ns = std::max(p.run.end_ns, slice.start_ns + slice.duration_ns);
  }
}

Result<profile::Profile> SpeedscopeBuilder::take() {
  if (parts_.empty()) return fail(fmt::format("{}: no profiles", name_));
  TRY(name_frames());
  for (size_t i = 0; i < parts_.size(); ++i) give_thread(parts_[i], i);
  set_run();
  if (slices_cut_)
    builder_.profile().diagnostics.add("speedscope_slices_cut", Severity::kDataLoss,
                                       "frames of a long file's deepest rows are in the sums but not on the timeline", slices_cut_,
                                       fmt::format("{} rows are left", max_depth_));
  if (rounded_)
    builder_.profile().diagnostics.add("speedscope_rounded_values", Severity::kNotice,
                                       "values were rounded to whole numbers", rounded_);
  return builder_.take();
}

}  // namespace cprof::format
