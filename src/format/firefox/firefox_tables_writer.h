// The tables of one thread on their way out: stacks, frames, functions, and the libraries and texts that all threads share.
// Used by firefox_writer.cc; one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/frames.h"
#include "base/string_table.h"
#include "format/json/json_writer.h"
#include "profile/profile.h"
#include "profile/row_index.h"

namespace cprof::format {

// The categories that we write, in the order of meta.categories.
enum class FirefoxCategory : uint8_t { kOther, kUser, kKernel, kJit, kIdle };
FirefoxCategory category_of(profile::FrameKind kind);

// Texts and libraries of the whole file.
class FirefoxShared {
 public:
  explicit FirefoxShared(const profile::Profile& profile) : profile_(profile) {}

  int64_t text(std::string_view text) { return strings_.intern(text).value; }
  int64_t lib(profile::MappingId mapping);  // -1 without one
  std::string_view lib_name(int64_t lib) const;

  void write_libs(JsonWriter& json) const;
  void write_texts(JsonWriter& json) const;

 private:
  const profile::Profile& profile_;
  StringTable strings_;
  std::vector<profile::MappingId> libs_;
  std::map<std::pair<StringId, StringId>, int64_t> lib_numbers_;  // by path and build-id
};

class FirefoxTablesWriter {
 public:
  FirefoxTablesWriter(const profile::Profile& profile, FirefoxShared& shared, analyze::FrameWalker& walker)
      : profile_(profile), shared_(shared), walker_(walker) {}

  // The row of a stack; -1 for no stack.
  int64_t stack(profile::CallSiteId site);
  void write(JsonWriter& json) const;

 private:
  struct Frame {
    int64_t address, depth, category, func, line, column;
    auto operator<=>(const Frame&) const = default;
  };
  struct Func {
    int64_t name, file, line, resource;
    bool is_js;
    auto operator<=>(const Func&) const = default;
  };
  using Pair = std::pair<int64_t, int64_t>;  // frame, prefix

  int64_t add_location(profile::LocationId location, int64_t prefix);
  int64_t resource(int64_t lib);

  const profile::Profile& profile_;
  FirefoxShared& shared_;
  analyze::FrameWalker& walker_;
  std::unordered_map<uint32_t, int64_t> stack_of_site_;
  profile::PairIndex stack_numbers_;
  std::map<Frame, int64_t> frame_numbers_;
  std::map<Func, int64_t> func_numbers_;
  std::map<int64_t, int64_t> resource_numbers_;  // by lib
  std::vector<Pair> stacks_;
  std::vector<Frame> frames_;
  std::vector<Func> funcs_;
  std::vector<int64_t> resources_;
};

}  // namespace cprof::format
