#include "analyze/python_frames.h"

#include <algorithm>

#include "profile/frame_name.h"

namespace cprof::analyze {

using profile::Location;
using profile::LocationId;
using profile::Profile;

namespace {

constexpr std::string_view kLoop = "_PyEval_EvalFrameDefault";

// "libpython3.12.so.1.0", "python3.13", "python3.12d"
bool is_interpreter_file(std::string_view path) {
  std::string_view name = profile::base_name(path);
  if (name.starts_with("libpython")) return true;
  if (!name.starts_with("python")) return false;
  name.remove_prefix(std::string_view("python").size());
  const size_t version = std::min(name.find_first_not_of("0123456789."), name.size());
  return version == name.size() || name.substr(version) == "d" || name.substr(version) == "t";
}

// "PyObject_Call", "_PyEval_Vector", "Py_RunMain"
bool is_interpreter_name(std::string_view name) {
  if (name.starts_with('_')) name.remove_prefix(1);
  return name.size() > 2 && name.starts_with("Py") && ((name[2] >= 'A' && name[2] <= 'Z') || name[2] == '_');
}

}  // namespace

PythonFrameFinder::PythonFrameFinder(const Profile& profile) : profile_(profile) {
  for (size_t i = 0; i < profile.locations.size(); ++i)
    for (uint16_t line = 0; line < profile.locations[i].line_count; ++line)
      if (name_of(LocationId(i), line).starts_with(kLoop)) holders_.insert(path_of(profile.locations[i]).value);
}

bool PythonFrameFinder::is_function(LocationId id, uint16_t line) const {
  return profile::is_python_name(name_of(id, line));
}

bool PythonFrameFinder::is_interpreter(LocationId id, uint16_t line) const {
  const StringId path = path_of(profile_.locations[id.index()]);
  if (is_interpreter_file(profile_.text(path))) return true;
  return holders_.contains(path.value) && is_interpreter_name(name_of(id, line));
}

std::string_view PythonFrameFinder::name_of(LocationId id, uint16_t line) const {
  const auto lines = profile_.lines_of(id);
  if (line >= lines.size() || !lines[line].function.valid()) return {};
  return profile_.text(profile_.functions[lines[line].function.index()].name);
}

StringId PythonFrameFinder::path_of(const Location& location) const {
  return location.mapping.valid() ? profile_.mappings[location.mapping.index()].path : profile::kNoText;
}

}  // namespace cprof::analyze
