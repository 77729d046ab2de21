// One row per (stack, thread, labels), with a value for each column; rows are written first, then the tables that they
// name, the strings last: as each table's rows become known. A recording's columns are samples, cpu and wall (see
// columns()); an import's are its own metrics in their order.
#include <fmt/format.h>

#include <protozero/pbf_writer.hpp>

#include "base/container_name.h"
#include "format/address_book.h"
#include "format/gzip.h"
#include "format/pprof/pprof.h"
#include "format/pprof/pprof_fields.h"
#include "format/pprof/value_table.h"
#include "format/values.h"
#include "profile/row_index.h"

namespace cprof::format {
namespace {

using profile::LocationId;
using profile::Profile;
using protozero::pbf_writer;

// Strings of the file, numbered as they are first used.
class TextNumbers {
 public:
  explicit TextNumbers(const Profile& profile) : profile_(profile), numbers_(profile.strings.size()) { of(""); }

  int64_t of(StringId id) {
    if (id.index() >= numbers_.size()) return 0;
    int64_t& number = numbers_[id.index()];
    if (!number && id != profile::kNoText) number = of(profile_.text(id));
    return number;
  }
  int64_t of(std::string_view text) {
    StringId id = texts_.intern(text);
    return static_cast<int64_t>(id.index());
  }
  const StringTable& texts() const { return texts_; }

 private:
  const Profile& profile_;
  std::vector<int64_t> numbers_;
  StringTable texts_;
};

class PprofWriter {
 public:
  PprofWriter(const Profile& profile, PackedOutput& out)
      : profile_(profile),
        out_(out),
        texts_(profile),
        used_(used_locations(profile)),
        book_(profile, used_),
        used_functions_(profile.functions.size()) {}

  Result<void> write() {
    ValueTable table(profile_);
    TRY(write_types(table));
    TRY(write_samples(table));
    TRY(write_mappings());
    TRY(write_locations());
    TRY(write_functions());
    TRY(write_run(table));
    return write_strings();
  }

 private:
  // One top-level message field.
  template <typename Fill>
  Result<void> put(uint32_t field, Fill&& fill) {
    message_.clear();
    fill(pbf_writer(message_));
    field_.clear();
    pbf_writer(field_).add_message(field, message_);
    return out_.write(field_);
  }

  Result<void> put_value_type(uint32_t field, std::string_view type, std::string_view unit) {
    const int64_t type_text = texts_.of(type), unit_text = texts_.of(unit);
    return put(field, [&](pbf_writer w) {
      w.add_int64(pb::ValueType::kType, type_text);
      w.add_int64(pb::ValueType::kUnit, unit_text);
    });
  }

  Result<void> write_types(const ValueTable& table) {
    for (const ValueColumn& column : table.columns())
      TRY(put_value_type(pb::Profile::kSampleType, column.type, column.unit));
    return {};
  }

  Result<void> write_samples(const ValueTable& table) {
    for (size_t i = 0; i < table.rows().size(); ++i) {
      const ValueTable::Row& row = table.rows()[i];
      ids_.clear();
      for (auto site = row.site; site.valid(); site = profile_.sites[site.index()].parent)
        ids_.push_back(profile_.sites[site.index()].location.index() + 1);
      if (ids_.empty()) ids_.push_back(unknown_location());
      auto values = table.values(i);
      TRY(put(pb::Profile::kSample, [&](pbf_writer w) {
        w.add_packed_uint64(pb::Sample::kLocationId, ids_.begin(), ids_.end());
        w.add_packed_int64(pb::Sample::kValue, values.begin(), values.end());
        bool has_thread = add_labels(w, row.labels);
        if (!has_thread && row.thread.valid()) add_thread(w, row.thread);
      }));
    }
    return {};
  }

  // Samples without a stack share one location, so that no reader loses their values.
  uint64_t unknown_location() {
    needs_unknown_ = true;
    return profile_.locations.size() + 1;
  }

  void add_label(pbf_writer& sample, std::string_view key, std::string_view text, std::optional<int64_t> number) {
    label_.clear();
    pbf_writer w(label_);
    w.add_int64(pb::Label::kKey, texts_.of(key));
    if (number) w.add_int64(pb::Label::kNum, *number);
    else w.add_int64(pb::Label::kStr, texts_.of(text));
    sample.add_message(pb::Sample::kLabel, label_);
  }

  // Whether the labels tell the thread by themselves.
  bool add_labels(pbf_writer& sample, profile::LabelSetId id) {
    bool has_thread = false;
    for (const profile::Label& label : profile_.labels_of(id)) {
      label_.clear();
      pbf_writer w(label_);
      w.add_int64(pb::Label::kKey, texts_.of(label.key));
      if (label.is_number) w.add_int64(pb::Label::kNum, label.number);
      else w.add_int64(pb::Label::kStr, texts_.of(label.text));
      if (label.unit.valid() && label.unit != profile::kNoText) w.add_int64(pb::Label::kNumUnit, texts_.of(label.unit));
      sample.add_message(pb::Sample::kLabel, label_);
      has_thread |= profile_.text(label.key) == pb::kLabelTid;
    }
    return has_thread;
  }

  void add_thread(pbf_writer& sample, profile::ThreadId id) {
    const profile::Thread& thread = profile_.threads[id.index()];
    if (thread.process.valid()) {
      const profile::Process& process = profile_.processes[thread.process.index()];
      if (auto name = profile_.text(process.name); !name.empty()) add_label(sample, pb::kLabelProcess, name, {});
      add_label(sample, pb::kLabelPid, {}, process.pid);
      const std::string_view cgroup = profile_.text(process.cgroup);
      if (!cgroup.empty() && cgroup != "/") add_label(sample, pb::kLabelCgroup, cgroup, {});
      if (auto container = container_of(cgroup); !container.empty()) add_label(sample, pb::kLabelContainer, container, {});
    }
    if (auto name = profile_.text(thread.name); !name.empty()) add_label(sample, pb::kLabelThread, name, {});
    add_label(sample, pb::kLabelTid, {}, thread.tid);
  }

  Result<void> write_mappings() {
    const auto& modules = book_.modules();
    for (size_t i = 0; i < modules.size(); ++i) TRY(write_mapping(modules[i], i + 1));
    if (!needs_unknown_) return {};
    BookModule unknown;
    unknown.path = "[unknown]";
    unknown.has_functions = true;
    return write_mapping(unknown, modules.size() + 1);
  }

  Result<void> write_mapping(const BookModule& m, uint64_t id) {
    using namespace pb::Mapping;
    const int64_t path = texts_.of(m.path), build_id = texts_.of(m.build_id);
    return put(pb::Profile::kMapping, [&](pbf_writer w) {
      w.add_uint64(kId, id);
      if (m.limit) w.add_uint64(kMemoryStart, m.start);
      if (m.limit) w.add_uint64(kMemoryLimit, m.limit);
      if (m.file_offset) w.add_uint64(kFileOffset, m.file_offset);
      if (path) w.add_int64(kFilename, path);
      if (build_id) w.add_int64(kBuildId, build_id);
      if (m.has_functions) w.add_bool(kHasFunctions, true);
      if (m.has_filenames) w.add_bool(kHasFilenames, true);
      if (m.has_line_numbers) w.add_bool(kHasLineNumbers, true);
      if (m.has_inline_frames) w.add_bool(kHasInlineFrames, true);
    });
  }

  Result<void> write_locations() {
    for (size_t i = 0; i < used_.size(); ++i)
      if (used_[i]) TRY(write_location(LocationId(i)));
    if (!needs_unknown_) return {};
    return put(pb::Profile::kLocation, [&](pbf_writer w) {
      w.add_uint64(pb::Location::kId, profile_.locations.size() + 1);
      w.add_uint64(pb::Location::kMappingId, book_.modules().size() + 1);
      w.add_uint64(pb::Location::kAddress, 1);
      add_line(w, profile_.functions.size() + 1, {});
    });
  }

  void add_line(pbf_writer& location, uint64_t function_id, const profile::Line& line) {
    label_.clear();
    pbf_writer w(label_);
    w.add_uint64(pb::Line::kFunctionId, function_id);
    if (line.line) w.add_int64(pb::Line::kLine, line.line);
    if (line.column) w.add_int64(pb::Line::kColumn, line.column);
    location.add_message(pb::Location::kLine, label_);
  }

  Result<void> write_location(LocationId id) {
    const AddressBook::Place place = book_.place(id);
    return put(pb::Profile::kLocation, [&](pbf_writer w) {
      w.add_uint64(pb::Location::kId, id.index() + 1);
      w.add_uint64(pb::Location::kMappingId, place.module + uint64_t{1});
      w.add_uint64(pb::Location::kAddress, place.address);
      for (const profile::Line& line : profile_.lines_of(id)) {
        if (!line.function.valid()) continue;
        used_functions_[line.function.index()] = true;
        add_line(w, line.function.index() + 1, line);
      }
      if (profile_.locations[id.index()].is_folded) w.add_bool(pb::Location::kIsFolded, true);
    });
  }

  Result<void> write_functions() {
    for (size_t i = 0; i < used_functions_.size(); ++i) {
      if (!used_functions_[i]) continue;
      const profile::Function& f = profile_.functions[i];
      TRY(write_function(i + 1, texts_.of(f.name), texts_.of(f.system_name), texts_.of(f.file), f.start_line));
    }
    if (!needs_unknown_) return {};
    return write_function(profile_.functions.size() + 1, texts_.of("[unknown]"), 0, 0, 0);
  }

  Result<void> write_function(uint64_t id, int64_t name, int64_t system_name, int64_t file, uint32_t start_line) {
    using namespace pb::Function;
    return put(pb::Profile::kFunction, [&](pbf_writer w) {
      w.add_uint64(kId, id);
      w.add_int64(kName, name);
      if (system_name) w.add_int64(kSystemName, system_name);
      if (file) w.add_int64(kFilename, file);
      if (start_line) w.add_int64(kStartLine, start_line);
    });
  }

  Result<void> write_run(const ValueTable& table) {
    const profile::RunInfo& run = profile_.run;
    if (table.period() > 0)
      TRY(put_value_type(pb::Profile::kPeriodType, table.period_type(), table.period_unit()));
    std::vector<int64_t> comments;
    for (const std::string& comment : run.comments) comments.push_back(texts_.of(comment));
    field_.clear();
    pbf_writer w(field_);
    if (table.period() > 0) w.add_int64(pb::Profile::kPeriod, table.period());
    if (run.start_realtime_ns) w.add_int64(pb::Profile::kTimeNanos, static_cast<int64_t>(run.start_realtime_ns));
    if (run.end_ns > run.start_ns)
      w.add_int64(pb::Profile::kDurationNanos, static_cast<int64_t>(run.end_ns - run.start_ns));
    if (!comments.empty()) w.add_packed_int64(pb::Profile::kComment, comments.begin(), comments.end());
    if (!table.default_type().empty()) w.add_int64(pb::Profile::kDefaultSampleType, texts_.of(table.default_type()));
    return out_.write(field_);
  }

  Result<void> write_strings() {
    const StringTable& texts = texts_.texts();
    for (size_t i = 0; i < texts.size(); ++i) {
      field_.clear();
      std::string_view text = texts[StringId(i)];
      pbf_writer(field_).add_string(pb::Profile::kStringTable, text.data(), text.size());
      TRY(out_.write(field_));
    }
    return {};
  }

  const Profile& profile_;
  PackedOutput& out_;
  TextNumbers texts_;
  std::vector<bool> used_;
  AddressBook book_;
  std::vector<bool> used_functions_;
  bool needs_unknown_ = false;
  std::vector<uint64_t> ids_;
  std::string message_, field_, label_;
};

bool wants_gzip(std::string_view path) { return !path.ends_with(".pb"); }

}  // namespace

Result<void> write_pprof(const Profile& profile, OutputFile& out, const WriteOptions& /*options*/) {
  PackedOutput packed = TRY(PackedOutput::create(out, wants_gzip(out.path())));
  TRY(PprofWriter(profile, packed).write());
  return packed.finish();
}

}  // namespace cprof::format
