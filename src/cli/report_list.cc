// Source lines of functions with their weight, as pprof's -list has them: from a little before the first line that weighs
// something to a little after the last.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/shares.h"
#include "cli/source_view.h"
#include "cli/text_layout.h"

namespace cprof::cli {
namespace {

using analyze::CodeValue;
using analyze::ListedFunction;
using analyze::ListedLine;
using analyze::Weights;

constexpr uint32_t kContext = 4;
constexpr uint32_t kLongestGap = 40;  // lines without weight in a row that are still shown

class ListText {
 public:
  ListText(const Weights& weights, const profile::Profile& profile, source::SourceFiles& files)
      : weights_(weights), profile_(profile), files_(files), scale_(whole_, weights.unit) {}

  void add(const ListedFunction& function) {
    view_.text += fmt::format("{}{}{}\n", view_.text.empty() ? "" : "\n", printable(function.name),
                              function.module.empty() ? "" : fmt::format("  in {}", printable(function.module)));
    if (!function.file.empty()) view_.text += fmt::format(" {}\n", printable(function.file));
    const auto source = files_.find(function.file);
    if (!source) {
      note(fmt::format("{}: {}", printable(function.name), source.error().message));
    } else if (is_newer(**source)) {
      note(fmt::format("{}: changed after the recording, so lines may not be those that ran", (*source)->path()));
    }
    values(function.value, fmt::format("of {} ({} with what it calls)", scale_.text(weights_.total),
                                       percent(share(function.value.total))));
    lines(function, source ? source->get() : nullptr);
  }

  SourceView take() { return std::move(view_); }

 private:
  double share(int64_t value) const {
    return whole_ == 0 ? 0 : static_cast<double>(value) / static_cast<double>(whole_);
  }

  bool is_newer(const source::SourceText& source) const {
    const uint64_t start = profile_.run.start_realtime_ns;
    return start != 0 && source.changed_ns() > 0 && static_cast<uint64_t>(source.changed_ns()) > start;
  }

  void note(std::string text) {
    if (std::ranges::find(view_.notes, text) == view_.notes.end()) view_.notes.push_back(printable(text));
  }

  void values(const CodeValue& value, std::string_view text) {
    auto cell = [&](int64_t v) { return right_aligned(v == 0 ? "." : scale_.text(v), 12); };
    view_.text += fmt::format(" {} {}  {}\n", cell(value.self), cell(value.total), text);
  }

  void source_line(uint32_t number, const CodeValue& value, const source::SourceText* source) {
    const std::string text = source ? printable(expand_tabs(source->line(number))) : std::string();
    values(value, fmt::format("{:>6}  {}", number == 0 ? "?" : std::to_string(number), text));
  }

  static std::string expand_tabs(std::string_view line) {
    std::string out;
    for (char c : line) {
      if (c == '\t') out.append(4 - out.size() % 4, ' ');
      else out += c;
    }
    return out;
  }

  void lines(const ListedFunction& function, const source::SourceText* source) {
    uint32_t next = 0;  // the first line that was not shown yet
    for (const ListedLine& line : function.lines) {
      if (line.line == 0 || !source) {
        source_line(line.line, line.value, source);
        continue;
      }
      fill(next, line.line, source);
      source_line(line.line, line.value, source);
      next = line.line + 1;
    }
    if (source && next != 0) fill_to(next, next + kContext - 1, source);
  }

  void fill_to(uint32_t from, uint32_t to, const source::SourceText* source) {
    for (uint32_t i = std::max(1u, from); i <= std::min<uint64_t>(to, source->size()); ++i) source_line(i, {}, source);
  }

  void fill(uint32_t next, uint32_t line, const source::SourceText* source) {
    const uint32_t before = line > kContext ? line - kContext : 1;
    if (next == 0) return fill_to(before, line - 1, source);
    if (line - next <= kLongestGap) return fill_to(next, line - 1, source);
    fill_to(next, next + kContext - 1, source);
    view_.text += fmt::format("{:>34}\n", "...");
    fill_to(before, line - 1, source);
  }

  const Weights& weights_;
  const int64_t whole_ = analyze::whole_of(weights_);
  const profile::Profile& profile_;
  source::SourceFiles& files_;
  ValueScale scale_;
  SourceView view_;
};

}  // namespace

SourceView render_list(const profile::Profile& profile, const Weights& weights, const analyze::Pattern& pattern,
                       source::SourceFiles& files, size_t max_functions) {
  const auto found = analyze::list_functions(profile, analyze::sum_by_site(profile, weights), pattern);
  ListText text(weights, profile, files);
  for (size_t i = 0; i < std::min(max_functions, found.size()); ++i) text.add(found[i]);
  SourceView view = text.take();
  if (found.size() > max_functions)
    view.text += fmt::format("\n and {} more functions (--rows)\n", found.size() - max_functions);
  if (found.empty()) return view;
  const ValueScale scale(weights.total, weights.unit);
  view.text = fmt::format("source lines: {}, {} in all\n\n {} {}\n", printable(weights.title), scale.text(weights.total),
                          right_aligned("self", 12), right_aligned("total", 12)) +
              view.text;
  return view;
}

}  // namespace cprof::cli
