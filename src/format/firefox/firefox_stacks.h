// The stacks of a set of tables as call sites, each made when it is first asked for. Inlined frames, which have rows of
// their own here, become lines of one location. Used by firefox_to_profile.cc; one thread.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "format/firefox/firefox_file.h"
#include "profile/builder.h"

namespace cprof::format {

class FirefoxStacks {
 public:
  // strings: of the tables or, since version 56, of the whole file. All must outlive this.
  FirefoxStacks(const FirefoxTables& tables, const std::vector<StringId>& strings, const FirefoxFile& file,
                int32_t first_lib, profile::ProfileBuilder& builder)
      : tables_(tables), strings_(strings), file_(file), first_lib_(first_lib), builder_(builder) {}

  // Columns of one table have one length, parents come before their children.
  Result<void> check() const;
  Result<profile::CallSiteId> site(int32_t stack);  // kNoIndex: no stack

 private:
  struct Row {
    profile::CallSiteId parent, site;
    int32_t base = kNoIndex;  // the row of the function that the inlined ones are in
    uint16_t inlined = 0;     // rows from base to here
    bool is_made = false;
  };

  int32_t prefix(int32_t stack) const;
  Result<void> make(int32_t stack);
  bool is_inlined_in(int32_t frame, int32_t outer) const;
  Result<profile::LocationId> location(int32_t stack, const Row& row);
  Result<profile::Line> line(int32_t frame);
  Result<StringId> string(int32_t index) const;
  profile::MappingId mapping(int32_t frame);
  profile::FrameKind kind(int32_t frame) const;

  const FirefoxTables& tables_;
  const std::vector<StringId>& strings_;
  const FirefoxFile& file_;
  int32_t first_lib_;
  profile::ProfileBuilder& builder_;
  std::vector<Row> rows_;
  std::vector<int32_t> path_;
  std::vector<profile::Line> lines_;
  std::unordered_map<std::string, profile::LocationId> locations_;  // those with an address
};

}  // namespace cprof::format
