// A stack is the path from a root to a site, and parents come before their children: what holds for a parent's stack is
// known when its child is looked at. So each expression meets each text once, and each site is visited twice.
#include "analyze/site_filter.h"

#include <algorithm>

#include "profile/frame_name.h"

namespace cprof::analyze {

using profile::CallSite;
using profile::CallSiteId;
using profile::Location;
using profile::LocationId;
using profile::Profile;

namespace {

uint16_t frames_of(const Location& location) { return std::max<uint16_t>(1, location.line_count); }

void append(std::vector<const Pattern*>& to, const std::vector<Pattern>& patterns) {
  for (const Pattern& pattern : patterns) to.push_back(&pattern);
}

}  // namespace

SiteFilter::SiteFilter(const Profile& profile, const Filters& filters)
    : profile_(profile), filters_(filters) {
  if (filters.python != PythonFrames::kMixed) python_.emplace(profile);
  append(patterns_, filters.focus);
  first_ignore_ = patterns_.size();
  append(patterns_, filters.ignore);
  first_hide_ = patterns_.size();
  append(patterns_, filters.hide);
  first_show_from_ = patterns_.size();
  if (filters.show_from) patterns_.push_back(&*filters.show_from);
  matches_.assign(patterns_.size(), TextMatches(profile.strings.size()));
  places_.resize(profile.locations.size());
  for (size_t i = 0; i < places_.size(); ++i) places_[i] = look_at(LocationId(i));
  walk_sites();
}

bool SiteFilter::finds(size_t index, StringId text) {
  if (!text.valid() || text == profile::kNoText) return false;
  int8_t& known = matches_[index][text.index()];
  if (known == 0) known = pattern(index).found_in(profile_.text(text)) ? 1 : -1;
  return known > 0;
}

bool SiteFilter::finds(size_t index, LocationId id, uint16_t line) {
  const Location& location = profile_.locations[id.index()];
  if (location.mapping.valid() && finds(index, profile_.mappings[location.mapping.index()].path)) return true;
  const auto lines = profile_.lines_of(id);
  if (line >= lines.size() || !lines[line].function.valid())
    return pattern(index).found_in(profile::stand_in_name(profile_, location));
  const profile::Function& function = profile_.functions[lines[line].function.index()];
  return finds(index, function.name) || finds(index, function.file);
}

bool SiteFilter::is_hidden(LocationId id, uint16_t line) {
  for (size_t i = first_hide_; i < first_show_from_; ++i)
    if (finds(i, id, line)) return true;
  return filters_.python == PythonFrames::kOnly && !python_->is_function(id, line);
}

SiteFilter::Place SiteFilter::look_at(LocationId id) {
  Place place;
  const uint16_t count = frames_of(profile_.locations[id.index()]);
  for (uint16_t line = 0; line < count; ++line) {
    for (size_t i = 0; i < first_ignore_; ++i)
      if (finds(i, id, line)) place.focus |= uint64_t{1} << i;
    for (size_t i = first_ignore_; i < first_hide_ && !place.is_ignored; ++i) place.is_ignored = finds(i, id, line);
    place.has_python |= python_ && python_->is_function(id, line);
    if (is_hidden(id, line)) continue;
    place.left.push_back(line);
    if (python_ && !python_->is_interpreter(id, line)) place.folded.push_back(line);
    if (first_show_from_ < patterns_.size() && finds(first_show_from_, id, line)) place.starts_at = line;
  }
  return place;
}

// Whether anything of the location is left in a stack that shows, or begins to show, there.
bool SiteFilter::is_shown(const Place& place, bool is_start, bool is_folded) {
  return std::ranges::any_of(is_folded ? place.folded : place.left,
                             [&](uint16_t line) { return !is_start || line <= place.starts_at; });
}

void SiteFilter::walk_sites() {
  focus_.resize(profile_.sites.size());
  flags_.resize(profile_.sites.size());
  for (size_t i = 0; i < profile_.sites.size(); ++i) {
    const CallSite& site = profile_.sites[i];
    const Place& place = places_[site.location.index()];
    uint8_t flags = site.parent.valid() ? flags_[site.parent.index()] : (filters_.show_from ? 0 : kStarted);
    focus_[i] = (site.parent.valid() ? focus_[site.parent.index()] : 0) | place.focus;
    if (place.is_ignored) flags |= kIgnored;
    if (place.has_python) flags |= kHasPython;
    const bool is_start = !(flags & kStarted);
    if (place.starts_at >= 0) flags |= kStarted;
    if ((flags & kStarted) && is_shown(place, is_start, false)) flags |= kShown;
    if ((flags & kStarted) && is_shown(place, is_start, true)) flags |= kShownFolded;
    flags_[i] = flags;
  }
}

bool SiteFilter::keeps(CallSiteId site) const {
  if (site.valid()) {
    const uint64_t wanted = first_ignore_ == 0 ? 0 : ~uint64_t{0} >> (64 - first_ignore_);
    return focus_[site.index()] == wanted && !(flags_[site.index()] & kIgnored) &&
           (flags_[site.index()] & (folds(site.index()) ? kShownFolded : kShown));
  }
  auto is_found = [](const Pattern& pattern) { return pattern.found_in(profile::kUnknownFrame); };
  return std::ranges::all_of(filters_.focus, is_found) && std::ranges::none_of(filters_.ignore, is_found) &&
         std::ranges::none_of(filters_.hide, is_found) && filters_.python != PythonFrames::kOnly &&
         (!filters_.show_from || is_found(*filters_.show_from));
}

// The location with the lines that are left; most keep all of them.
LocationId SiteFilter::variant(LocationId id, bool is_start, bool is_folded, profile::ProfileBuilder& into,
                               profile::Transfer& transfer) {
  const Place& place = places_[id.index()];
  const auto& left = is_folded ? place.folded : place.left;
  const uint16_t count = frames_of(profile_.locations[id.index()]);
  const bool is_cut = is_start && place.starts_at + 1 < count;
  if (left.size() == count && !is_cut) return transfer.location(id);
  auto [it, is_new] = variants_.try_emplace({id.value, is_cut, is_folded});
  if (!is_new) return it->second;
  const LocationId whole = transfer.location(id);
  std::vector<profile::Line> lines;
  for (uint16_t line : left)
    if (!is_cut || line <= place.starts_at) lines.push_back(into.profile().lines_of(whole)[line]);
  return it->second = into.add_location(Location(into.profile().locations[whole.index()]), lines);
}

void SiteFilter::place(const std::vector<bool>& used, profile::ProfileBuilder& into, profile::Transfer& transfer) {
  std::vector<bool> whole = used, folded = used;
  for (size_t i = 0; i < used.size(); ++i) (folds(i) ? whole : folded)[i] = false;
  place_stacks(std::move(whole), false, into, transfer);
  place_stacks(std::move(folded), true, into, transfer);
}

void SiteFilter::place_stacks(std::vector<bool> ends, bool is_folded, profile::ProfileBuilder& into,
                              profile::Transfer& transfer) {
  std::vector<bool> needed = ends;
  for (size_t i = needed.size(); i-- > 0;)
    if (needed[i] && profile_.sites[i].parent.valid()) needed[profile_.sites[i].parent.index()] = true;
  std::vector<CallSiteId> now(profile_.sites.size());
  for (size_t i = 0; i < profile_.sites.size(); ++i) {
    if (!needed[i]) continue;
    const CallSite& site = profile_.sites[i];
    if (site.parent.valid()) now[i] = now[site.parent.index()];
    const bool is_start = filters_.show_from && !(site.parent.valid() && (flags_[site.parent.index()] & kStarted));
    const bool is_left = (flags_[i] & kStarted) && is_shown(places_[site.location.index()], is_start, is_folded);
    if (is_left) now[i] = into.site(now[i], variant(site.location, is_start, is_folded, into, transfer));
    if (ends[i]) transfer.set(CallSiteId(i), now[i]);
  }
}

}  // namespace cprof::analyze
