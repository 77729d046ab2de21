// Gives every location that is written a module and an address that no other location of that module has, never 0 and
// inside [start, limit): what pprof's and Perfetto's readers key frames by. Real addresses are kept. Used by the pprof
// and pftrace writers; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/number_map.h"
#include "profile/profile.h"

namespace cprof::format {

struct BookModule {
  std::string_view path, build_id;
  uint64_t start = 0, limit = 0;   // 0, 0: not known
  uint64_t file_offset = 0, load_bias = 0;
  bool has_functions = false, has_filenames = false, has_line_numbers = false, has_inline_frames = false;
  bool is_kernel = false;
};

class AddressBook {
 public:
  struct Place {
    uint32_t module = 0;           // index into modules()
    uint64_t address = 0;          // a return address minus 1: inside the call, as pprof has it
  };

  // used: which locations will be written, by index.
  AddressBook(const profile::Profile& profile, const std::vector<bool>& used);

  const std::vector<BookModule>& modules() const { return modules_; }
  Place place(profile::LocationId id) const { return places_[id.index()]; }

 private:
  void add_modules(const profile::Profile& profile, const std::vector<bool>& used);
  void add_ranges(const profile::Profile& profile, const std::vector<bool>& used);
  uint32_t made_up_module(profile::FrameKind kind, bool has_address);
  void note_lines(BookModule& module, const profile::Profile& profile, profile::LocationId id);
  uint64_t free_address(uint32_t module, uint64_t wanted);

  std::vector<BookModule> modules_;
  std::vector<uint32_t> module_of_mapping_;
  std::vector<uint32_t> made_up_;                       // by FrameKind, without and with an address
  std::vector<NumberSet<uint64_t>> taken_;              // by module
  std::vector<uint64_t> next_;                          // by module: where free addresses are looked for
  std::vector<Place> places_;
};

// Addresses from here on are made up: not canonical on any CPU.
inline constexpr uint64_t kMadeUpAddress = uint64_t{1} << 56;

// Whether a path is that of a module made up for code without a mapping: "[user]", "[jit]", "[interpreted]", "[unknown]".
bool is_made_up_module(std::string_view path);

// Which locations the stacks of samples and aggregates use.
std::vector<bool> used_locations(const profile::Profile& profile);

}  // namespace cprof::format
