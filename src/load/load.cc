#include "load/load.h"

#include <fmt/format.h>

#include "format/input.h"
#include "pipeline/imported_names.h"
#include "pipeline/profile_namer.h"
#include "pipeline/unfinished.h"

namespace cprof::load {
namespace {

Result<profile::Profile> replay(const format::FormatInfo& info, format::Input input, const Options& options) {
  std::string name = input.name;
  auto source = info.open_source(std::move(input), options.read);
  pipeline::Pipeline pipeline(options.pipeline);
  Diagnostics losses;
  TRY(source->run(pipeline, losses));
  profile::Profile profile = pipeline.take();
  profile.diagnostics.merge(losses);
  profile.run.source = name;
  return profile;
}

Result<profile::Profile> read(const format::FormatInfo& info, format::Input input, const Options& options) {
  profile::Profile profile = TRY(info.read(std::move(input), options.read));
  if (profile.run.is_unfinished) pipeline::name_unfinished(profile, options.pipeline);
  else if (options.name_finished) pipeline::name_profile(profile, options.pipeline);
  if (info.has_system_names) pipeline::demangle_imported(profile, options.pipeline.demangle);
  return profile;
}

Result<const format::FormatInfo*> format_of(const format::Input& input, const std::string& name) {
  if (name.empty()) return format::detect(input);
  const format::FormatInfo* info = format::find_by_name(name);
  if (!info || (!info->read && !info->open_source)) return fail(fmt::format("'{}' is not an input format", name));
  return info;
}

}  // namespace

Result<profile::Profile> load_profile(const std::string& path, const Options& options) {
  format::Input input = TRY(format::open_input(path));
  const format::FormatInfo* info = TRY(format_of(input, options.format_name));
  if (info->open_source) return replay(*info, std::move(input), options);
  if (info->read) return read(*info, std::move(input), options);
  return fail(fmt::format("{}: cprof writes {} but does not read it", path, info->title));
}

}  // namespace cprof::load
