// Two parts: the function's source lines with their weight, then the instructions of every place where it was compiled to,
// its own code and the functions that it was inlined into, each under the source line it belongs to.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyze/shares.h"
#include "cli/source_view.h"
#include "cli/text_layout.h"
#include "format/pprof/frame_filter.h"
#include "object/debug_files.h"
#include "source/binary.h"
#include "source/code.h"

namespace cprof::cli {
namespace {

using analyze::CodeValue;
using analyze::Weights;
using profile::Location;
using profile::Profile;

constexpr size_t kContext = 6;       // instructions without weight around one that has some
constexpr size_t kMostCandidates = 8;
constexpr size_t kColumns = 120;

std::set<std::string_view> function_names(const Profile& profile) {
  std::set<std::string_view> names;
  for (const profile::Line& line : profile.lines)
    if (line.function.valid()) names.insert(profile.text(profile.functions[line.function.index()].name));
  return names;
}

// Code that the function lies in: its own, or a function that it was inlined into.
struct Host {
  profile::MappingId mapping{};
  uint64_t an_address = 0;
  bool is_own = false;
  std::map<uint64_t, CodeValue> values;  // by an address inside the instruction
};

using HostKey = std::pair<uint32_t, uint64_t>;  // mapping, where the host begins

class Annotated {
 public:
  Annotated(const Profile& profile, const Weights& weights, const std::string& function, source::SourceFiles& files,
            const AnnotateOptions& options)
      : p_(profile), weights_(weights), function_(function), files_(files), options_(options) {}

  SourceView run() {
    const auto exactly = analyze::Pattern::compile(fmt::format("^\\Q{}\\E$", function_));
    if (exactly) view_ = render_list(p_, weights_, *exactly, files_, SIZE_MAX);
    find_hosts();
    if (hosts_.empty()) note("its instructions are not shown: the profile has no addresses of it in a file");
    for (const auto& [key, host] : hosts_) add_code(host);
    return std::move(view_);
  }

 private:
  void note(const std::string& text) {
    if (std::ranges::find(view_.notes, text) == view_.notes.end()) view_.notes.push_back(printable(text));
  }

  bool names_it(const profile::Line& line) const {
    return line.function.valid() && p_.text(p_.functions[line.function.index()].name) == function_;
  }

  void find_hosts() {
    const auto values = analyze::values_by_location(p_, analyze::sum_by_site(p_, weights_));
    for (size_t i = 0; i < p_.locations.size(); ++i) {
      const Location& location = p_.locations[i];
      const auto lines = p_.lines_of(profile::LocationId(i));
      const bool is_here = std::ranges::any_of(lines, [&](const auto& line) { return names_it(line); });
      if (!is_here || location.kind != profile::FrameKind::kUser || !location.mapping.valid()) continue;
      const profile::Mapping& mapping = p_.mappings[location.mapping.index()];
      if (mapping.end <= mapping.start || (values[i].self == 0 && values[i].total == 0)) continue;
      const uint64_t address = location.file_address - (location.is_return_address ? 1 : 0);
      Host& host = hosts_[{location.mapping.value, location.function_start}];
      host.mapping = location.mapping;
      host.an_address = address;
      host.is_own |= names_it(lines.back());
      CodeValue& value = host.values[address];
      value.self = analyze::add_clamped(value.self, values[i].self);
      value.total = analyze::add_clamped(value.total, values[i].total);
    }
  }

  int64_t recorded_here_ns() const {
    utsname name{};
    const bool is_here = uname(&name) == 0 && p_.run.hostname == name.nodename;
    return is_here ? static_cast<int64_t>(p_.run.start_realtime_ns) : 0;
  }

  void add_code(const Host& host) {
    const profile::Mapping& mapping = p_.mappings[host.mapping.index()];
    auto code = code_of(host, std::string(p_.text(mapping.path)), std::string(p_.text(mapping.build_id)));
    if (!code) return note(fmt::format("its instructions are not shown: {}", code.error().message));
    view_.text += fmt::format("\ninstructions{} in {}\n\n {} {}  {:>10}\n",
                              host.is_own ? "" : fmt::format(", inlined into {}", printable(host_name(*code))),
                              printable(p_.text(mapping.path)), right_aligned("self", 8), right_aligned("total", 8), "address");
    show(*code, values_of(*code, host));
  }

  Result<std::vector<source::CodeLine>> code_of(const Host& host, const std::string& path, const std::string& build_id) {
    const auto file = TRY(source::open_binary({path, build_id, recorded_here_ns()}));
    Diagnostics diagnostics;
    object::DebugFileFinder finder;
    const auto debug = finder.find(*file, path, std::nullopt, diagnostics);
    const auto range = source::function_at(*file, debug.get(), host.an_address);
    if (!range) return fail(fmt::format("{}: no symbol tells where the function at {:#x} begins and ends", path, host.an_address));
    auto code = TRY(source::code_of(file, debug, *range, options_.demangle, diagnostics));
    if (host.is_own) return code;
    std::erase_if(code, [&](const source::CodeLine& line) { return !place_of(line); });
    return code;
  }

  static std::string host_name(const std::vector<source::CodeLine>& code) {
    return code.empty() || code[0].places.empty() ? "code without a name" : code[0].places.back().function;
  }

  // The function's own place in the chain of what was inlined at an instruction.
  const source::SourcePlace* place_of(const source::CodeLine& line) const {
    const auto found = std::ranges::find(line.places, function_, &source::SourcePlace::function);
    return found == line.places.end() ? nullptr : &*found;
  }

  static std::vector<CodeValue> values_of(const std::vector<source::CodeLine>& code, const Host& host) {
    std::vector<CodeValue> values(code.size());
    for (size_t i = 0; i < code.size(); ++i) {
      const uint64_t start = code[i].instruction.address;
      for (auto it = host.values.lower_bound(start); it != host.values.end() && it->first < start + code[i].instruction.size; ++it) {
        values[i].self = analyze::add_clamped(values[i].self, it->second.self);
        values[i].total = analyze::add_clamped(values[i].total, it->second.total);
      }
    }
    return values;
  }

  void show(const std::vector<source::CodeLine>& code, const std::vector<CodeValue>& values) {
    std::vector<bool> is_shown(code.size(), options_.show_all);
    for (size_t i = 0; i < code.size(); ++i)
      if (values[i].self != 0 || values[i].total != 0)
        for (size_t k = i > kContext ? i - kContext : 0; k < std::min(code.size(), i + kContext + 1); ++k) is_shown[k] = true;
    shown_file_.clear();
    size_t hidden = 0;
    for (size_t i = 0; i < code.size(); ++i) {
      if (!is_shown[i]) {
        ++hidden;
        continue;
      }
      say_hidden(hidden);
      heading(code[i]);
      view_.text += fmt::format(" {} {}  {:>10x}  {}\n", cell(values[i].self), cell(values[i].total),
                                code[i].instruction.address, printable(code[i].instruction.text));
    }
    say_hidden(hidden);
  }

  void say_hidden(size_t& count) {
    if (count != 0) view_.text += fmt::format("{:>31}... {} instruction{} without weight (--all)\n", "", count, count == 1 ? "" : "s");
    count = 0;
  }

  std::string cell(int64_t value) const {
    const double share = whole_ == 0 ? 0 : static_cast<double>(value) / static_cast<double>(whole_);
    return right_aligned(value == 0 ? "." : percent(share), 8);
  }

  // The source line that the next instructions belong to, when it is another one than before.
  void heading(const source::CodeLine& line) {
    const source::SourcePlace* place = place_of(line);
    if (!place && !line.places.empty()) place = &line.places.front();
    if (!place || place->line == 0) return;
    if (place->file == shown_file_ && place->line == shown_line_) return;
    if (place->file != shown_file_) view_.text += fmt::format("{:>20}{}\n", "", printable(place->file));
    shown_file_ = place->file;
    shown_line_ = place->line;
    const auto source = files_.find(place->file);
    if (!source) note(source.error().message);
    std::string text = fmt::format("{:>20}{:>6} | {}", "", place->line, source ? printable((*source)->line(place->line)) : "");
    view_.text += shortened(text, kColumns) + "\n";
  }

  const Profile& p_;
  const Weights& weights_;
  const int64_t whole_ = analyze::whole_of(weights_);
  const std::string& function_;
  source::SourceFiles& files_;
  const AnnotateOptions& options_;
  std::map<HostKey, Host> hosts_;
  SourceView view_;
  std::string shown_file_;
  uint32_t shown_line_ = 0;
};

}  // namespace

Result<std::string> choose_function(const Profile& profile, const std::string& wanted) {
  const std::set<std::string_view> names = function_names(profile);
  if (names.contains(wanted)) return wanted;
  std::vector<std::string_view> found;
  for (std::string_view name : names)
    if (format::without_arguments(name) == wanted) found.push_back(name);
  if (found.empty()) {
    const auto pattern = TRY(analyze::Pattern::compile(wanted));
    for (std::string_view name : names)
      if (pattern.found_in(name)) found.push_back(name);
  }
  if (found.size() == 1) return std::string(found.front());
  if (found.empty()) return fail(fmt::format("no function is called {}, and none is found by it", printable(wanted)));
  std::string list;
  for (size_t i = 0; i < std::min(kMostCandidates, found.size()); ++i)
    list += fmt::format("{}{}", i ? "; " : "", printable(found[i]));
  if (found.size() > kMostCandidates) list += fmt::format("; and {} more", found.size() - kMostCandidates);
  return fail(fmt::format("{} functions are found by {}; name one of them: {}", found.size(), printable(wanted), list));
}

SourceView render_annotated(const Profile& profile, const Weights& weights, const std::string& function,
                            source::SourceFiles& files, const AnnotateOptions& options) {
  return Annotated(profile, weights, function, files, options).run();
}

}  // namespace cprof::cli
