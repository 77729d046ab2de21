// The picture needs no script: every box carries its whole name as a title, and as text that its own small viewport clips.
#include <fmt/format.h>

#include <cmath>

#include "analyze/weights.h"
#include "base/digit_groups.h"
#include "base/utf8.h"
#include "format/folded/folded.h"
#include "format/svg/flame_layout.h"
#include "format/svg/svg.h"

namespace cprof::format {
namespace {

constexpr double kWidth = 1200, kMargin = 10, kRow = 17, kHead = 44, kFoot = 8;
constexpr double kLeastPixels = 0.1;     // narrower boxes are not drawn
constexpr double kLeastForText = 14;
constexpr double kCharPixels = 6.2;

// XML 1.0 has no way to write most control characters; what is no UTF-8 would make the whole file unreadable.
void append_xml(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const auto [code, bytes] = first_code_point(text);
    const bool is_control = (code < 0x20 && code != '\t') || code == 0x7f || code == 0xfffe || code == 0xffff;
    if (bytes == 0 || is_control) out += kReplacementText;
    else if (code == '&') out += "&amp;";
    else if (code == '<') out += "&lt;";
    else if (code == '>') out += "&gt;";
    else if (code == '"') out += "&quot;";
    else out += text.substr(0, bytes);
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
}

// Warm colours as flame graphs have had from the beginning; kernel orange, JIT green, code without a name grey, negative
// values blue. The shade is the name's.
std::string color_of(const FlameBox& box) {
  uint32_t hash = 2166136261u;
  for (const char c : box.name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  const uint32_t shade = hash >> 8 & 0xff;
  int hue = 14 + static_cast<int>(shade % 36), saturation = 72, light = 70 + static_cast<int>(hash >> 20 & 7);
  if (box.total < 0) hue = 212;
  else if (box.name.ends_with("_[k]")) hue = 24 + static_cast<int>(shade % 8), saturation = 88, light -= 4;
  else if (box.name.ends_with("_[j]")) hue = 110 + static_cast<int>(shade % 24), saturation = 40;
  else if (box.name.starts_with('[')) saturation = 0, light += 4;
  return fmt::format("hsl({},{}%,{}%)", hue, saturation, light);
}

class Picture {
 public:
  Picture(const FlameLayout& layout, std::string_view unit, OutputFile& out) : layout_(layout), unit_(unit), out_(out) {}

  Result<void> write(std::string_view title) {
    height_ = kHead + kFoot + kRow * (layout_.depth() + 1);
    std::string text = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"100%\" font-family=\"Verdana,DejaVu Sans,sans-serif\""
        " font-size=\"11\">\n<style>svg svg:hover rect{{stroke:#000;stroke-width:1}}</style>\n"
        "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#fff\"/>\n<text x=\"{2:.0f}\" y=\"26\" font-size=\"16\" text-anchor=\"middle\">",
        kWidth, height_, kWidth / 2);
    append_xml(text, title);
    text += "</text>\n";
    const bool has_negative = static_cast<double>(layout_.total()) < layout_.width();
    const std::string_view note = layout_.width() == 0 ? "nothing to draw: all values are 0"
                                  : has_negative      ? "values below 0 are blue; widths are absolute"
                                                      : "";
    if (!note.empty()) text += fmt::format("<text x=\"{:.0f}\" y=\"40\" text-anchor=\"middle\">{}</text>\n", kWidth / 2, note);
    TRY(out_.write(text));
    if (layout_.width() > 0) TRY(write_boxes());
    return out_.write(std::string_view("</svg>\n"));
  }

 private:
  Result<void> write_boxes() {
    TRY(write_box({"all", 0, 0, layout_.width(), layout_.total()}, 0));
    for (const FlameBox& box : layout_.boxes()) TRY(write_box(box, box.depth + 1));
    return {};
  }

  Result<void> write_box(const FlameBox& box, uint32_t row) {
    const double scale = (kWidth - 2 * kMargin) / layout_.width();
    const double width = box.width * scale;
    std::string text = fmt::format("<svg x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\"><title>", kMargin + box.start * scale,
                                   height_ - kFoot - kRow * (row + 1), width, kRow - 1);
    append_xml(text, box.name);
    text += fmt::format(" ({} {}, {:.2f}%)</title><rect width=\"100%\" height=\"100%\" rx=\"1\" fill=\"{}\"/>", grouped(box.total), unit_,
                        100 * box.width / layout_.width(), color_of(box));
    if (width >= kLeastForText) {
      text += "<text x=\"3\" y=\"12\">";
      append_label(text, box.name, width);
      text += "</text>";
    }
    text += "</svg>\n";
    return out_.write(text);
  }

  // All of a name may stand there, clipped; of one that is a megabyte long only what could be seen.
  static void append_label(std::string& out, std::string_view name, double width) {
    const auto visible = static_cast<size_t>(width / kCharPixels) + 200;
    append_xml(out, name.substr(0, std::min(name.size(), visible)));
  }

  const FlameLayout& layout_;
  std::string_view unit_;
  OutputFile& out_;
  double height_ = 0;
};

std::string_view unit_of(const profile::Profile& profile, const ValueChoice& choice) {
  if (choice.divisor == 1000) return "µs";
  if (choice.kind != ValueChoice::Kind::kWeight || !choice.metric.valid()) return choice.kind == ValueChoice::Kind::kCount ? "samples" : "ns";
  const profile::Metric& metric = profile.metrics[choice.metric.index()];
  return profile.text(profile.text(metric.unit) == "count" ? metric.name : metric.unit);
}

std::string title_of(const profile::Profile& profile, const ValueChoice& choice) {
  std::string_view what = profile.run.command.empty() ? profile.run.source : profile.run.command;
  std::string title(what.substr(0, 200));
  if (!title.empty()) title += ": ";
  if (choice.kind == ValueChoice::Kind::kWall) return title + "wall time";
  const bool has_name = choice.metric.valid() && choice.metric.index() < profile.metrics.size();
  const std::string_view metric = has_name ? profile.text(profile.metrics[choice.metric.index()].name) : "samples";
  return title + (choice.kind == ValueChoice::Kind::kCount && metric != "samples" ? fmt::format("samples of {}", metric) : std::string(metric));
}

}  // namespace

Result<void> write_svg(const profile::Profile& profile, OutputFile& out, const WriteOptions& options) {
  const ValueChoice choice = TRY(choose_value(profile, options));
  const FoldedTree tree = fold(profile, choice, options);
  double width = 0;
  TRY(tree.for_each_line(choice.divisor, [&](std::string_view, FoldedTree::Node, int64_t value) -> Result<void> {
    width += std::fabs(static_cast<double>(value));
    return {};
  }));
  FlameLayout layout(width * kLeastPixels / (kWidth - 2 * kMargin));
  TRY(tree.for_each_line(choice.divisor, [&](std::string_view path, FoldedTree::Node, int64_t value) -> Result<void> {
    layout.add(path, value);
    return {};
  }));
  layout.finish();
  if (layout.narrow() > 0 && options.losses)
    options.losses->add("svg_narrow_frames", Severity::kInfo, "frames too narrow to be drawn in the flame graph; .html has them all", layout.narrow());
  return Picture(layout, unit_of(profile, choice), out).write(title_of(profile, choice));
}

}  // namespace cprof::format
