#include "store/stack_index.h"

#include <algorithm>

#include "profile/frame_name.h"

namespace cprof::store {

Result<StackIndex> StackIndex::of(const ProfileSet& profiles) {
  StackIndex index;
  for (const auto& source : profiles.sources()) {
    index.add_frames(*source);
    TRY(index.add_sites(*source));
  }
  return index;
}

void StackIndex::add_frames(const ProfileSource& source) {
  const profile::Profile& profile = source.profile();
  std::vector<StringId> texts(profile.strings.size());  // by the profile's own number
  auto text_of = [&](StringId own) {
    StringId& known = texts[own.index()];
    if (!known.valid()) known = strings_.intern(profile.text(own));
    return known;
  };
  for (size_t i = 0; i < profile.locations.size(); ++i) {
    const profile::Location& location = profile.locations[i];
    Frame frame{static_cast<uint32_t>(lines_.size()), location.line_count, profile::kNoText};
    if (location.mapping.valid()) frame.module = text_of(profile.mappings[location.mapping.index()].path);
    int64_t symbol = source.bases().symbol + source.first_symbol(static_cast<uint32_t>(i));
    for (const profile::Line& line : profile.lines_of(profile::LocationId(i))) {
      const profile::Function& function = profile.functions[line.function.index()];
      const bool is_inlined = lines_.size() + 1 < size_t{frame.first_line} + frame.line_count;
      lines_.push_back({text_of(function.name), text_of(function.file), symbol++,
                        line.line ? line.line : function.start_line, is_inlined});
    }
    if (frame.line_count == 0) {
      lines_.push_back({strings_.intern(profile::stand_in_name(profile, location)), profile::kNoText});
      frame.line_count = 1;
    }
    frames_.push_back(frame);
  }
  if (source.frame_count() > profile.locations.size()) {
    frames_.push_back({static_cast<uint32_t>(lines_.size()), 1, profile::kNoText});
    lines_.push_back({strings_.intern(profile::kUnknownFrame), profile::kNoText});
  }
}

Result<void> StackIndex::add_sites(const ProfileSource& source) {
  const profile::Profile& profile = source.profile();
  const auto first_site = static_cast<uint32_t>(source.bases().site),
             first_frame = static_cast<uint32_t>(source.bases().frame);
  uint64_t nodes = node_count_;
  for (size_t i = 0; i < source.site_count(); ++i) {
    Site site{.frame = first_frame + static_cast<uint32_t>(profile.locations.size()),
              .first_node = static_cast<uint32_t>(nodes)};
    if (i < profile.sites.size()) {
      site.frame = first_frame + profile.sites[i].location.value;
      if (profile.sites[i].parent.valid()) site.parent = first_site + profile.sites[i].parent.value;
    }
    nodes += frames_[site.frame].line_count;
    if (nodes >= kNone) return fail("more than 4,294,967,294 frames with their inlined functions: not supported");
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
