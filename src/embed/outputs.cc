#include "embed/outputs.h"

#include <limits.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "format/chrome/chrome.h"
#include "format/folded/folded.h"
#include "format/pftrace/pftrace.h"
#include "format/pprof/pprof.h"

namespace cprof::embed {
namespace {

using Writer = Result<void> (*)(const profile::Profile&, OutputFile&, const format::WriteOptions&);

struct Format {
  std::string_view extension;
  Writer write;
};

constexpr Format kFormats[] = {
    {".folded", format::write_folded},   {".collapsed", format::write_folded},
    {".pb.gz", format::write_pprof},     {".pb", format::write_pprof},
    {".pprof", format::write_pprof},     {".pftrace", format::write_pftrace},
    {".perfetto-trace", format::write_pftrace}, {".trace.json", format::write_chrome},
};

const Format* format_of(std::string_view path) {
  for (const Format& format : kFormats)
    if (path.ends_with(format.extension)) return &format;
  return nullptr;
}

Result<void> write_to(OutputFile out, const profile::Profile& profile, std::string_view pattern) {
  const Format* format = format_of(pattern);
  if (!format) return check_output(pattern);
  TRY(format->write(profile, out, {}));
  return out.commit();
}

}  // namespace

std::string working_folder() {
  char path[PATH_MAX];
  return getcwd(path, sizeof path) ? path : "";
}

void settle_outputs(std::vector<std::string>& patterns, std::string_view folder) {
  std::string before;
  for (char c : folder) before += c == '%' ? "%%" : std::string(1, c);
  for (std::string& pattern : patterns)
    if (!folder.empty() && !pattern.starts_with('/')) pattern = before + '/' + pattern;
}

Result<void> check_output(std::string_view pattern) {
  if (format_of(pattern)) return {};
  std::string known;
  for (const Format& format : kFormats) known += fmt::format("{}{}", known.empty() ? "" : " ", format.extension);
  return fail(fmt::format("{}: libcprof writes {}; other formats by `cprof convert`", pattern, known));
}

std::string expand_name(std::string_view pattern, const OutputName& name) {
  std::string path;
  bool has_pid = false, has_number = false;
  for (size_t n = 0; n < pattern.size(); n++) {
    const char next = pattern[n] == '%' && n + 1 < pattern.size() ? pattern[n + 1] : 0;
    n += next == 'p' || next == 'e' || next == 'n' || next == '%';
    switch (next) {
      case 'p': path += std::to_string(name.pid), has_pid = true; break;
      case 'e': path += name.program; break;
      case 'n': path += std::to_string(name.number), has_number = true; break;
      default: path += pattern[n];
    }
  }
  if (!has_pid && !name.is_first_process) path += fmt::format(".{}", name.pid);
  if (!has_number && name.number) path += fmt::format(".{}", name.number);
  return path;
}

Result<void> write_profile(const profile::Profile& profile, std::string_view pattern, const std::string& path) {
  return write_to(TRY(OutputFile::create(path)), profile, pattern);
}

Result<void> write_profile_onto(int fd, const profile::Profile& profile, std::string_view pattern) {
  return write_to(TRY(OutputFile::onto(fd, std::string(pattern))), profile, pattern);
}

}  // namespace cprof::embed
