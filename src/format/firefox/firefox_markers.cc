#include "format/firefox/firefox_markers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "format/json/json_number.h"

namespace cprof::format {
namespace {

enum Phase : int32_t { kInstant = 0, kInterval = 1, kStart = 2, kEnd = 3 };
constexpr size_t kMaxLanes = 32;  // tracks of one name

class MarkerReader {
 public:
  MarkerReader(const FirefoxMarkers& markers, const std::vector<StringId>& strings, const FirefoxFile& file,
               profile::ThreadId thread, profile::ProfileBuilder& builder)
      : markers_(markers), strings_(strings), file_(file), thread_(thread), builder_(builder) {}

  Result<void> read() {
    for (size_t i = 0; i < markers_.name.size(); ++i) TRY(add(i));
    for (auto& [name, starts] : open_)
      for (const Span& start : starts) spans_.push_back(start);
    std::ranges::stable_sort(spans_, {}, [](const Span& s) { return std::tuple(s.name, s.start, ~s.end); });
    for (const Span& span : spans_) place(span);
    return {};
  }

 private:
  struct Span {
    StringId name, category;
    uint64_t start = 0, end = UINT64_MAX;  // no end: it was never told
    profile::LabelSetId labels;
  };
  struct Lane {
    profile::TrackId track;
    std::vector<uint64_t> open_ends;
  };

  static int64_t number(const NumberColumn& column, size_t row) { return row < column.size() ? column[row] : kNoNumber; }

  uint64_t time(int64_t ns) {
    const int64_t at = ns == kNoNumber ? file_.clock_ns : file_.clock_ns + ns;
    return static_cast<uint64_t>(std::max<int64_t>(at, 0));
  }

  Result<void> add(size_t i) {
    const int32_t name = markers_.name[i];
    if (name < 0 || static_cast<size_t>(name) >= strings_.size())
      return fail(fmt::format("marker {}: string {} is not in the table of {}", i, name, strings_.size()));
    Span span{.name = strings_[static_cast<size_t>(name)], .category = category(i), .labels = labels(i)};
    if (markers_.phase.empty()) return add_old(span, i);
    add_phase(span, markers_.phase[std::min(i, markers_.phase.size() - 1)], number(markers_.start_ns, i),
              number(markers_.end_ns, i));
    return {};
  }

  // Before version 32 a marker had one time, and its data said what it was.
  Result<void> add_old(const Span& span, size_t i) {
    int64_t start = number(markers_.time_ns, i), end = start;
    int32_t phase = kInstant;
    const auto [first, count] = i < markers_.data.size() ? markers_.data[i] : std::pair<uint32_t, uint32_t>();
    for (const FirefoxField& field : std::span(markers_.fields).subspan(first, count)) {
      if (text(field.key) == "interval") phase = text(field.text) == "start" ? kStart : kEnd;
      const bool is_start = text(field.key) == "startTime", is_end = text(field.key) == "endTime";
      const auto value = is_start || is_end ? scaled_number(text(field.text), kMillisToNanos) : std::nullopt;
      if (!field.is_number || !value) continue;
      (is_start ? start : end) = *value;
      if (is_end) phase = kInterval;
    }
    add_phase(span, phase, start, end);
    return {};
  }

  void add_phase(Span span, int32_t phase, int64_t start, int64_t end) {
    switch (phase) {
      case kInterval:
        span.start = time(start);
        span.end = std::max(span.start, time(end));
        spans_.push_back(span);
        break;
      case kStart:
        span.start = time(start);
        open_[span.name].push_back(span);
        break;
      case kEnd: close(span, time(end)); break;
      default: add_mark(span, time(start));
    }
  }

  void close(Span span, uint64_t end) {
    auto& starts = open_[span.name];
    if (starts.empty()) {
      builder_.profile().diagnostics.add("firefox_unmatched_ends", Severity::kError,
                                         "ends of markers that never began became marks");
      return add_mark(span, end);
    }
    Span start = starts.back();
    starts.pop_back();
    start.end = std::max(start.start, end);
    if (!start.labels.valid()) start.labels = span.labels;
    spans_.push_back(start);
  }

  void add_mark(const Span& span, uint64_t at) {
    builder_.profile().marks.push_back(
        {.thread = thread_, .name = span.name, .category = span.category, .time_ns = at, .labels = span.labels});
  }

  StringId category(size_t i) {
    const int32_t row = i < markers_.category.size() ? markers_.category[i] : kNoIndex;
    const bool is_known = row >= 0 && static_cast<size_t>(row) < file_.categories.size();
    return is_known ? builder_.intern(file_.categories[static_cast<size_t>(row)]) : profile::kNoText;
  }

  profile::LabelSetId labels(size_t i) {
    if (i >= markers_.data.size()) return {};
    const auto [first, count] = markers_.data[i];
    const auto fields = std::span(markers_.fields).subspan(first, count);
    std::string type;
    for (const FirefoxField& field : fields)
      if (text(field.key) == "type") type = text(field.text);
    std::vector<profile::Label> labels;
    for (const FirefoxField& field : fields) labels.push_back(label(field, type));
    return builder_.label_set(labels);
  }

  profile::Label label(const FirefoxField& field, const std::string& type) const {
    profile::Label label{.key = field.key, .text = field.text};
    if (!field.is_number) return label;
    const auto value = whole_number(text(field.text));
    if (!value) return label;  // a decimal stays as it was written
    const bool is_text = file_.text_fields.contains({type, std::string(text(field.key))});
    if (is_text && *value >= 0 && static_cast<size_t>(*value) < strings_.size()) {
      label.text = strings_[static_cast<size_t>(*value)];
      return label;
    }
    label.text = profile::kNoText;
    label.number = *value;
    label.is_number = true;
    return label;
  }

  std::string_view text(StringId id) const { return builder_.profile().text(id); }

  // The first track of this name where the span lies inside another or behind it.
  void place(const Span& span) {
    auto& lanes = lanes_[span.name];
    for (size_t i = 0; i <= lanes.size(); ++i) {
      if (i == kMaxLanes) break;
      if (i == lanes.size()) lanes.push_back({new_track(span.name), {}});
      Lane& lane = lanes[i];
      while (!lane.open_ends.empty() && lane.open_ends.back() <= span.start) lane.open_ends.pop_back();
      if (!lane.open_ends.empty() && lane.open_ends.back() < span.end) continue;
      return add_slice(span, lane);
    }
    builder_.profile().diagnostics.add("firefox_overlapping_markers", Severity::kDataLoss,
                                       "markers beyond 32 of one name at the same time were left out");
  }

  void add_slice(const Span& span, Lane& lane) {
    const bool is_open = span.end == UINT64_MAX;
    builder_.profile().slices.push_back({.thread = {},
                                         .name = span.name,
                                         .category = span.category,
                                         .start_ns = span.start,
                                         .duration_ns = is_open ? 0 : span.end - span.start,
                                         .depth = static_cast<uint32_t>(lane.open_ends.size()),
                                         .track = lane.track,
                                         .labels = span.labels,
                                         .is_open = is_open});
    lane.open_ends.push_back(span.end);
  }

  profile::TrackId new_track(StringId name) {
    profile::Profile& p = builder_.profile();
    p.tracks.push_back({.name = name, .process = p.threads[thread_.index()].process, .thread = thread_});
    return profile::TrackId(p.tracks.size() - 1);
  }

  const FirefoxMarkers& markers_;
  const std::vector<StringId>& strings_;
  const FirefoxFile& file_;
  profile::ThreadId thread_;
  profile::ProfileBuilder& builder_;
  std::vector<Span> spans_;
  std::map<StringId, std::vector<Span>> open_;
  std::map<StringId, std::vector<Lane>> lanes_;
};

}  // namespace

Result<void> add_markers(const FirefoxMarkers& markers, const std::vector<StringId>& strings, const FirefoxFile& file,
                         profile::ThreadId thread, profile::ProfileBuilder& builder) {
  return MarkerReader(markers, strings, file, thread, builder).read();
}

}  // namespace cprof::format
