// A pprof file becomes a Profile: its tables are checked and converted once, row by row, then each sample is a few table
// look-ups and one insertion per value. Ids that appear twice, and indexes and ids that lead nowhere, are refused with
// the number; only a line whose function is missing keeps its place under a name that says so.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "format/address_book.h"
#include "format/frame_text.h"
#include "format/input.h"
#include "format/pprof/frame_filter.h"
#include "format/pprof/pprof.h"
#include "format/pprof/pprof_fields.h"
#include "format/pprof/pprof_file.h"
#include "profile/builder.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

using profile::FrameKind;
using profile::LocationId;
using profile::Profile;

// No profiler writes as many; what a byte of the file stands for takes a hundred bytes in memory.
constexpr size_t kMostTypes = 4096, kMostComments = 65'536, kMostLabels = 65'536, kMostFrames = size_t{1} << 20;

uint32_t line_number(int64_t value) {
  return value > 0 && value <= int64_t{0xffffffff} ? static_cast<uint32_t>(value) : 0;
}

class PprofReader {
 public:
  PprofReader(std::span<const std::byte> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  Result<Profile> read() {
    file_ = TRY(parse_pprof(bytes_, name_));
    if (file_.sample_types.empty()) return fail(name_ + ": no sample_type in it: not a pprof profile");
    TRY(check_count(file_.sample_types.size(), kMostTypes, "sample types"));
    TRY(check_count(file_.comments.size(), kMostComments, "comments"));
    texts_.resize(file_.strings.size());
    TRY(convert_metrics());
    TRY(convert_mappings());
    TRY(convert_functions());
    TRY(convert_locations());
    TRY(convert_run());
    TRY(for_each_pprof_sample(bytes_, name_, [this](const PprofSample& sample) { return add_sample(sample); }));
    return builder_.take();
  }

 private:
  std::unexpected<Error> refuse(std::string_view what) const { return fail(fmt::format("{}: {}", name_, what)); }

  Result<void> check_count(size_t count, size_t most, std::string_view what) const {
    if (count <= most) return {};
    return refuse(fmt::format("{} {}, more than the limit of {}", count, what, most));
  }

  Result<std::string_view> text(int64_t index) const {
    if (index == 0) return std::string_view();
    if (index < 0 || static_cast<uint64_t>(index) >= file_.strings.size())
      return refuse(fmt::format("string {} is not in the table of {}", index, file_.strings.size()));
    return file_.strings[static_cast<size_t>(index)];
  }

  Result<StringId> intern(int64_t index) {
    std::string_view string = TRY(text(index));
    if (index == 0) return profile::kNoText;
    StringId& id = texts_[static_cast<size_t>(index)];
    if (!id.valid()) id = builder_.intern(string);
    return id;
  }

  Result<void> convert_metrics() {
    for (const auto& type : file_.sample_types) {
      std::string_view name = TRY(text(type.type)), unit = TRY(text(type.unit));
      metrics_.push_back(builder_.add_metric(name.empty() ? "unknown" : name, unit.empty() ? "count" : unit, 0,
                                             name == "cpu" && unit == "nanoseconds"));
    }
    return {};
  }

  Result<void> convert_mappings() {
    mapping_ids_.reserve(file_.mappings.size());
    for (const auto& m : file_.mappings) {
      TRY(add_id(mapping_ids_, m.id, mappings_.size(), "mapping"));
      const std::string_view path = TRY(text(m.filename));
      mapping_kinds_.push_back(kind_of_module(path));
      if (is_made_up_module(path) && m.build_id == 0) {  // by our writer, for code without a mapping
        mappings_.emplace_back();
        continue;
      }
      profile::Mapping row;
      row.path = TRY(intern(m.filename));
      row.build_id = TRY(intern(m.build_id));
      row.start = m.start;
      row.end = m.limit;
      row.file_offset = m.offset;
      row.load_bias = m.start - m.offset;
      row.has_functions = m.has_functions;
      row.has_filenames = m.has_filenames;
      row.has_line_numbers = m.has_line_numbers;
      row.has_inline_frames = m.has_inline_frames;
      mappings_.push_back(builder_.mapping(row));
    }
    return {};
  }

  Result<void> add_id(IdIndex& index, uint64_t id, size_t row, std::string_view what) const {
    if (id == 0) return refuse(fmt::format("a {} has the id 0", what));
    if (!index.add(id, static_cast<uint32_t>(row))) return refuse(fmt::format("two {}s have the id {}", what, id));
    return {};
  }

  Result<void> convert_functions() {
    function_ids_.reserve(file_.functions.size());
    for (const auto& f : file_.functions) {
      TRY(add_id(function_ids_, f.id, functions_.size(), "function"));
      profile::Function row;
      row.system_name = TRY(intern(f.system_name));
      row.name = TRY(intern(f.name));
      if (row.name == profile::kNoText) row.name = row.system_name;
      if (row.name == profile::kNoText) row.name = builder_.intern(profile::kUnknownFrame);
      row.file = TRY(intern(f.filename));
      row.start_line = line_number(f.start_line);
      functions_.push_back(builder_.function(row));
    }
    return {};
  }

  profile::FunctionId function(uint64_t id) {
    uint32_t row = function_ids_.find(id);
    if (row != IdIndex::kNone) return functions_[row];
    builder_.profile().diagnostics.add("pprof_missing_functions", Severity::kDataLoss,
                                       "lines name functions that are not in the file", 1, fmt::format("id {}", id));
    return builder_.function({.name = builder_.intern(fmt::format("[missing function {}]", id))});
  }

  Result<void> convert_locations() {
    FrameFilter filter(TRY(text(file_.drop_frames)), TRY(text(file_.keep_frames)), builder_.profile().diagnostics);
    location_ids_.reserve(file_.locations.size());
    std::vector<profile::Line> lines;
    for (const auto& l : file_.locations) {
      TRY(add_id(location_ids_, l.id, locations_.size(), "location"));
      lines.clear();
      for (uint32_t i = 0; i < l.line_count; ++i) {
        const auto& line = file_.lines[l.first_line + i];
        lines.push_back({function(line.function_id), line_number(line.line), line_number(line.column)});
      }
      dropped_.push_back(drop_lines(filter, lines));
      locations_.push_back(builder_.add_location(converted(l), lines));
    }
    is_filtering_ = filter.active();
    return {};
  }

  profile::Location converted(const PprofFile::Location& l) {
    profile::Location location;
    location.address = location.file_address = l.address;
    location.is_folded = l.is_folded;
    uint32_t row = l.mapping_id ? mapping_ids_.find(l.mapping_id) : IdIndex::kNone;
    if (row == IdIndex::kNone) {
      if (l.mapping_id)
        builder_.profile().diagnostics.add("pprof_missing_mappings", Severity::kDataLoss,
                                           "locations name mappings that are not in the file", 1,
                                           fmt::format("id {}", l.mapping_id));
      return location;
    }
    location.kind = mapping_kinds_[row];
    location.mapping = mappings_[row];
    if (!location.mapping.valid()) {
      if (l.address >= kMadeUpAddress) location.address = location.file_address = 0;
      return location;
    }
    const profile::Mapping& mapping = builder_.profile().mappings[location.mapping.index()];
    if (mapping.end != 0 && l.address >= mapping.start) location.file_address = l.address - mapping.load_bias;
    return location;
  }

  // How much of a location is dropped: the outermost line that the filter names, and all inside it.
  enum class Drop : uint8_t { kNothing, kInnerLines, kAll };
  Drop drop_lines(FrameFilter& filter, std::vector<profile::Line>& innermost_first) {
    if (!filter.active()) return Drop::kNothing;
    for (size_t i = innermost_first.size(); i-- > 0;) {
      const profile::Function& f = builder_.profile().functions[innermost_first[i].function.index()];
      if (!filter.drops(builder_.profile().text(f.name))) continue;
      if (i + 1 == innermost_first.size()) return Drop::kAll;
      innermost_first.erase(innermost_first.begin(), innermost_first.begin() + static_cast<ptrdiff_t>(i) + 1);
      return Drop::kInnerLines;
    }
    return Drop::kNothing;
  }

  Result<void> convert_run() {
    profile::RunInfo& run = builder_.profile().run;
    run.source = name_;
    run.start_realtime_ns = static_cast<uint64_t>(std::max<int64_t>(file_.time_nanos, 0));
    run.end_ns = static_cast<uint64_t>(std::max<int64_t>(file_.duration_nanos, 0));
    for (int64_t comment : file_.comments) run.comments.emplace_back(TRY(text(comment)));
    // Unset means the last one, says the format.
    StringId named = TRY(intern(file_.default_sample_type));
    bool is_known = named != profile::kNoText;
    run.default_metric = is_known ? named : builder_.profile().metrics.back().name;
    return convert_period();
  }

  Result<void> convert_period() {
    if (!file_.has_period_type || file_.period <= 0) return {};
    Profile& profile = builder_.profile();
    std::string_view type = TRY(text(file_.period_type.type)), unit = TRY(text(file_.period_type.unit));
    if (unit == "nanoseconds") profile.run.sampling_interval_ns = static_cast<uint64_t>(file_.period);
    for (profile::Metric& metric : profile.metrics) {
      if (profile.text(metric.name) != type || profile.text(metric.unit) != unit) continue;
      metric.period = static_cast<uint64_t>(file_.period);
      return {};
    }
    profile.run.period_type = type;
    profile.run.period_unit = unit;
    profile.run.period = file_.period;
    return {};
  }

  Result<void> add_sample(const PprofSample& sample) {
    ++samples_;
    if (sample.values.size() != metrics_.size())
      return refuse(fmt::format("sample {} has {} values for {} sample types", samples_, sample.values.size(),
                                metrics_.size()));
    TRY(check_count(sample.locations.size(), kMostFrames, "frames in a sample"));
    TRY(check_count(sample.labels.size(), kMostLabels, "labels in a sample"));
    TRY(convert_path(sample));
    profile::Aggregate row;
    row.site = builder_.stack(path_);
    row.labels = TRY(convert_labels(sample));
    row.thread = thread_of(row.labels);
    for (size_t i = 0; i < metrics_.size(); ++i) {
      row.metric = metrics_[i];
      row.value = sample.values[i];
      builder_.add_aggregate(row);
    }
    return {};
  }

  // Root first. From the root on, the first dropped frame ends the stack; frames before the first that is not dropped
  // stay, so that no stack is dropped whole.
  Result<void> convert_path(const PprofSample& sample) {
    path_.clear();
    bool seen_kept = false;
    for (size_t i = sample.locations.size(); i-- > 0;) {
      uint32_t row = location_ids_.find(sample.locations[i]);
      if (row == IdIndex::kNone)
        return refuse(fmt::format("sample {} names location {}, which is not in the file", samples_,
                                  sample.locations[i]));
      const Drop drop = is_filtering_ ? dropped_[row] : Drop::kNothing;
      if (drop == Drop::kAll && seen_kept) return {};
      path_.push_back(locations_[row]);
      if (drop == Drop::kInnerLines && seen_kept) return {};
      seen_kept |= drop == Drop::kNothing;
    }
    return {};
  }

  Result<profile::LabelSetId> convert_labels(const PprofSample& sample) {
    labels_.clear();
    for (const auto& l : sample.labels) {
      profile::Label label;
      label.key = TRY(intern(l.key));
      label.text = TRY(intern(l.str));
      label.unit = TRY(intern(l.num_unit));
      label.is_number = l.str == 0;
      label.number = label.is_number ? l.num : 0;
      labels_.push_back(label);
    }
    return builder_.label_set(labels_);
  }

  // A number "tid" makes the sample's thread known; "pid", "thread", "process" and "cgroup" add to it. The labels stay.
  profile::ThreadId thread_of(profile::LabelSetId labels) {
    if (!labels.valid()) return {};
    if (labels.index() >= thread_of_labels_.size()) thread_of_labels_.resize(labels.index() + 1);
    auto& known = thread_of_labels_[labels.index()];
    if (!known) known = find_thread();
    return *known;
  }

  profile::ThreadId find_thread() {
    const int32_t tid = number_label(pb::kLabelTid).value_or(0);
    if (tid <= 0) return {};
    const int32_t pid = number_label(pb::kLabelPid).value_or(0);
    const std::string_view process_name = text_label(pb::kLabelProcess), thread_name = text_label(pb::kLabelThread);
    auto [process, is_new_process] = processes_.try_emplace({pid, std::string(process_name)});
    if (is_new_process) {
      process->second = builder_.add_process(pid, process_name.empty() ? thread_name : process_name);
      builder_.profile().processes[process->second.index()].cgroup = builder_.intern(text_label(pb::kLabelCgroup));
    }
    auto [thread, is_new] = threads_.try_emplace({process->second, tid, std::string(thread_name)});
    if (is_new) thread->second = builder_.add_thread(process->second, tid, thread_name);
    return thread->second;
  }

  std::optional<int32_t> number_label(std::string_view key) {
    std::optional<int32_t> found;
    for (const profile::Label& label : labels_) {
      if (!label.is_number || builder_.profile().text(label.key) != key) continue;
      if (found || label.number < 0 || label.number > INT32_MAX) return std::nullopt;
      found = static_cast<int32_t>(label.number);
    }
    return found;
  }

  std::string_view text_label(std::string_view key) {
    for (const profile::Label& label : labels_)
      if (!label.is_number && builder_.profile().text(label.key) == key) return builder_.profile().text(label.text);
    return {};
  }

  std::span<const std::byte> bytes_;
  std::string name_;
  PprofFile file_;
  profile::ProfileBuilder builder_;
  std::vector<StringId> texts_;  // by index in the file's string table
  std::vector<profile::MetricId> metrics_;
  std::vector<profile::MappingId> mappings_;
  std::vector<FrameKind> mapping_kinds_;
  std::vector<profile::FunctionId> functions_;
  std::vector<LocationId> locations_;
  std::vector<Drop> dropped_;  // by row of locations_
  bool is_filtering_ = false;
  IdIndex mapping_ids_, function_ids_, location_ids_;
  std::vector<LocationId> path_;
  std::vector<profile::Label> labels_;
  std::vector<std::optional<profile::ThreadId>> thread_of_labels_;
  std::map<std::pair<int32_t, std::string>, profile::ProcessId> processes_;
  std::map<std::tuple<profile::ProcessId, int32_t, std::string>, profile::ThreadId> threads_;
  uint64_t samples_ = 0;
};

}  // namespace

Result<Profile> read_pprof(Input input, const ReadOptions& options) {
  std::string name = input.name;
  Bytes bytes = TRY(read_unpacked(std::move(input), options));
  if (bytes.size == 0) return fail(name + ": the file is empty");
  return PprofReader(bytes.span(), std::move(name)).read();
}

}  // namespace cprof::format
