// Modules are the profile's mappings (those in use, for a recording: the machine may have had thousands), then one made
// up for each kind of code that has no mapping, since a frame without a module is slow and never merged in Perfetto.
// Such code without an address gets a module of its own, of made-up addresses, so that they stay recognisable.
#include "format/address_book.h"

#include <algorithm>
#include <limits>

namespace cprof::format {
namespace {

using profile::FrameKind;
using profile::Location;
using profile::LocationId;
using profile::Profile;

constexpr uint32_t kNone = 0xffffffff;
constexpr uint64_t kMadeUpStride = uint64_t{1} << 48;
constexpr uint64_t kPage = 4096;
constexpr int kNearby = 15;                            // bytes: about one instruction

// In the order of FrameKind. "[kernel]" is a real mapping's name too.
constexpr std::string_view kMadeUpPaths[] = {"[user]", "[kernel]", "[jit]", "[interpreted]", "[unknown]"};

uint64_t wanted_address(const Location& location) {
  return location.is_return_address && location.address > 1 ? location.address - 1 : location.address;
}

}  // namespace

bool is_made_up_module(std::string_view path) {
  return path != "[kernel]" && std::ranges::find(kMadeUpPaths, path) != std::end(kMadeUpPaths);
}

std::vector<bool> used_locations(const Profile& profile) {
  std::vector<bool> used_sites(profile.sites.size()), used(profile.locations.size());
  for (const auto& sample : profile.samples)
    if (sample.site.valid()) used_sites[sample.site.index()] = true;
  for (const auto& row : profile.aggregates)
    if (row.site.valid()) used_sites[row.site.index()] = true;
  for (const auto& interval : profile.off_cpu)
    if (interval.site.valid()) used_sites[interval.site.index()] = true;
  for (size_t i = profile.sites.size(); i-- > 0;) {  // children come after their parents
    if (!used_sites[i]) continue;
    used[profile.sites[i].location.index()] = true;
    if (profile.sites[i].parent.valid()) used_sites[profile.sites[i].parent.index()] = true;
  }
  return used;
}

AddressBook::AddressBook(const Profile& profile, const std::vector<bool>& used)
    : made_up_(2 * std::size(kMadeUpPaths), kNone), places_(profile.locations.size()) {
  add_modules(profile, used);
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    const Location& location = profile.locations[i];
    places_[i].module = location.mapping.valid() ? module_of_mapping_[location.mapping.index()]
                                                 : made_up_module(location.kind, location.address != 0);
    if (location.kind == FrameKind::kKernel) modules_[places_[i].module].is_kernel = true;
    if (!location.mapping.valid() || profile.timed()) note_lines(modules_[places_[i].module], profile, LocationId(i));
  }
  if (profile.timed()) add_ranges(profile, used);
  taken_.resize(modules_.size());
  next_.resize(modules_.size());
  for (size_t i = 0; i < modules_.size(); ++i) next_[i] = std::max(modules_[i].start, uint64_t{1});
  // Real addresses first, so that a made-up one never takes the place of a real one.
  std::vector<uint32_t> homeless;
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    const BookModule& module = modules_[places_[i].module];
    uint64_t wanted = wanted_address(profile.locations[i]);
    bool inside = wanted >= module.start && wanted < module.limit;
    bool free_range = module.limit == 0 && wanted != 0;
    places_[i].address = wanted;
    if ((!inside && !free_range) || wanted == 0 || !taken_[places_[i].module].insert(wanted).second)
      homeless.push_back(static_cast<uint32_t>(i));
  }
  for (uint32_t i : homeless) places_[i].address = free_address(places_[i].module, places_[i].address);
}

void AddressBook::add_modules(const Profile& profile, const std::vector<bool>& used) {
  std::vector<bool> wanted(profile.mappings.size(), !profile.timed());
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i] && profile.locations[i].mapping.valid()) wanted[profile.locations[i].mapping.index()] = true;
  module_of_mapping_.assign(profile.mappings.size(), kNone);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const profile::Mapping& m = profile.mappings[i];
    module_of_mapping_[i] = static_cast<uint32_t>(modules_.size());
    BookModule module{profile.text(m.path), profile.text(m.build_id), m.start, m.end, m.file_offset, m.load_bias,
                      m.has_functions, m.has_filenames, m.has_line_numbers, m.has_inline_frames};
    bool usable = m.start < m.end && (m.start > INT64_MAX || m.end <= uint64_t{INT64_MAX});  // readers take them signed
    if (!usable) module.start = module.limit = 0;
    modules_.push_back(module);
  }
}

// A recording's kernel and what else has no range of its own: from the lowest to the highest address seen.
void AddressBook::add_ranges(const Profile& profile, const std::vector<bool>& used) {
  std::vector<uint64_t> low(modules_.size(), std::numeric_limits<uint64_t>::max()), high(modules_.size());
  for (size_t i = 0; i < used.size(); ++i) {
    uint64_t address = wanted_address(profile.locations[i]);
    if (!used[i] || address == 0) continue;
    low[places_[i].module] = std::min(low[places_[i].module], address);
    high[places_[i].module] = std::max(high[places_[i].module], address);
  }
  for (size_t i = 0; i < modules_.size(); ++i) {
    if ((modules_[i].limit != 0 && !modules_[i].is_kernel) || high[i] == 0) continue;
    if ((low[i] > INT64_MAX) != (high[i] > INT64_MAX) || high[i] > UINT64_MAX - kPage) continue;
    modules_[i].start = low[i] & ~(kPage - 1);
    modules_[i].limit = (high[i] | (kPage - 1)) + 1;
  }
}

uint32_t AddressBook::made_up_module(FrameKind kind, bool has_address) {
  const auto k = static_cast<size_t>(kind);
  uint32_t& index = made_up_[2 * k + has_address];
  if (index != kNone) return index;
  BookModule module;
  module.path = kMadeUpPaths[k];
  if (!has_address) {
    module.start = kMadeUpAddress + k * kMadeUpStride;
    module.limit = module.start + kPage;  // free_address() raises it
  }
  index = static_cast<uint32_t>(modules_.size());
  modules_.push_back(module);
  return index;
}

void AddressBook::note_lines(BookModule& module, const Profile& profile, LocationId id) {
  auto lines = profile.lines_of(id);
  module.has_inline_frames |= lines.size() > 1;
  for (const profile::Line& line : lines) {
    module.has_functions |= line.function.valid();
    module.has_line_numbers |= line.line != 0;
    if (line.function.valid())
      module.has_filenames |= profile.functions[line.function.index()].file != profile::kNoText;
  }
}

// The same instruction if it can be, else the lowest that is free, raising the limit as far as it must.
uint64_t AddressBook::free_address(uint32_t index, uint64_t wanted) {
  BookModule& module = modules_[index];
  auto& taken = taken_[index];
  if (wanted >= module.start && wanted < module.limit)
    for (int i = 1; i <= kNearby && wanted + i < module.limit; ++i)
      if (taken.insert(wanted + i).second) return wanted + i;
  uint64_t& next = next_[index];
  while (!taken.insert(next).second) ++next;
  if (module.limit != 0 && next >= module.limit) module.limit = next + 1;
  return next++;
}

}  // namespace cprof::format
