// Which frames are functions of a Python program, and which are the interpreter that runs them. Asked by the frame
// filters; goes by names and files alone.
#pragma once

#include <unordered_set>

#include "profile/profile.h"

namespace cprof::analyze {

class PythonFrameFinder {
 public:
  explicit PythonFrameFinder(const profile::Profile& profile);

  bool is_function(profile::LocationId id, uint16_t line) const;
  // Code of libpython or of the program python; of another program that holds the interpreter, what has a name of
  // CPython's.
  bool is_interpreter(profile::LocationId id, uint16_t line) const;

 private:
  std::string_view name_of(profile::LocationId id, uint16_t line) const;
  StringId path_of(const profile::Location& location) const;

  const profile::Profile& profile_;
  std::unordered_set<uint32_t> holders_;  // paths of files with the interpreter's loop; kNoText's: code of no file
};

}  // namespace cprof::analyze
