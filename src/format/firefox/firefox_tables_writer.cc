#include "format/firefox/firefox_tables_writer.h"

#include <algorithm>

#include "profile/frame_name.h"

namespace cprof::format {
namespace {

constexpr uint64_t kMaxAddress = uint64_t{1} << 53;  // what a reader in JavaScript keeps exact

// The number of a row, which is added when it is new.
template <typename Row>
int64_t number_of(std::map<Row, int64_t>& numbers, std::vector<Row>& rows, const Row& row) {
  auto [it, is_new] = numbers.try_emplace(row, static_cast<int64_t>(rows.size()));
  if (is_new) rows.push_back(row);
  return it->second;
}

// -1 as null unless the format wants it.
void number_or_null(JsonWriter& json, int64_t value, bool is_number) {
  if (is_number)
    json.number(value);
  else
    json.null();
}

void write_length(JsonWriter& json, size_t length) { json.number("length", static_cast<int64_t>(length)); }

}  // namespace

FirefoxCategory category_of(profile::FrameKind kind) {
  switch (kind) {
    case profile::FrameKind::kUser: return FirefoxCategory::kUser;
    case profile::FrameKind::kKernel: return FirefoxCategory::kKernel;
    case profile::FrameKind::kJit:
    case profile::FrameKind::kInterpreted: return FirefoxCategory::kJit;
    case profile::FrameKind::kUnknown: break;
  }
  return FirefoxCategory::kOther;
}

int64_t FirefoxShared::lib(profile::MappingId mapping) {
  if (!mapping.valid()) return -1;
  const profile::Mapping& row = profile_.mappings[mapping.index()];
  auto [it, is_new] = lib_numbers_.try_emplace({row.path, row.build_id}, static_cast<int64_t>(libs_.size()));
  if (is_new) libs_.push_back(mapping);
  return it->second;
}

std::string_view FirefoxShared::lib_name(int64_t lib) const {
  return profile::base_name(profile_.text(profile_.mappings[libs_[static_cast<size_t>(lib)].index()].path));
}

void FirefoxShared::write_libs(JsonWriter& json) const {
  json.begin_array();
  for (size_t i = 0; i < libs_.size(); ++i) {
    const profile::Mapping& row = profile_.mappings[libs_[i].index()];
    const auto path = profile_.text(row.path), build_id = profile_.text(row.build_id);
    const auto name = lib_name(static_cast<int64_t>(i));
    json.begin_object();
    for (auto [key, value] : {std::pair("arch", std::string_view("")), {"name", name}, {"path", path}, {"debugName", name},
                              {"debugPath", path}, {"breakpadId", std::string_view("")}}) json.text(key, value);
    if (build_id.empty())
      json.null("codeId");
    else
      json.text("codeId", build_id);
    json.end_object();
  }
  json.end_array();
}

void FirefoxShared::write_texts(JsonWriter& json) const {
  json.begin_array();
  for (size_t i = 0; i < strings_.size(); ++i) json.text(strings_[StringId(i)]);
  json.end_array();
}

int64_t FirefoxTablesWriter::resource(int64_t lib) {
  if (lib < 0) return -1;
  auto [it, is_new] = resource_numbers_.try_emplace(lib, static_cast<int64_t>(resources_.size()));
  if (is_new) resources_.push_back(lib);
  return it->second;
}

// Outermost function first, each inlined one in the one before.
int64_t FirefoxTablesWriter::add_location(profile::LocationId id, int64_t prefix) {
  const profile::Location& location = profile_.locations[id.index()];
  const auto lines = profile_.lines_of(id);
  const size_t count = std::max<size_t>(lines.size(), 1);
  const bool has_address = location.mapping.valid() && location.file_address != 0 && location.file_address < kMaxAddress;
  for (size_t i = count; i-- > 0;) {
    const analyze::Frame frame = walker_.frame(id, static_cast<uint16_t>(i));
    const bool is_named = frame.function.valid();
    const uint32_t start = is_named ? profile_.functions[frame.function.index()].start_line : 0;
    const Func func{.name = shared_.text(frame.name), .file = frame.file.empty() ? -1 : shared_.text(frame.file),
                    .line = start, .resource = resource(shared_.lib(location.mapping)),
                    .is_js = location.kind == profile::FrameKind::kJit || location.kind == profile::FrameKind::kInterpreted};
    const Frame row{.address = has_address ? static_cast<int64_t>(location.file_address) : -1,
                    .depth = static_cast<int64_t>(count - 1 - i),
                    .category = static_cast<int64_t>(category_of(location.kind)),
                    .func = number_of(func_numbers_, funcs_, func),
                    .line = frame.source_line,
                    .column = is_named ? lines[i].column : 0};
    const Pair stack(number_of(frame_numbers_, frames_, row), prefix);
    prefix = stack_numbers_.find_or_add(static_cast<uint32_t>(stack.first), static_cast<uint32_t>(prefix + 1), [&] {
      stacks_.push_back(stack);
      return static_cast<uint32_t>(stacks_.size() - 1);
    });
  }
  return prefix;
}

int64_t FirefoxTablesWriter::stack(profile::CallSiteId site) {
  std::vector<profile::CallSiteId> path;
  int64_t prefix = -1;
  for (profile::CallSiteId s = site; s.valid(); s = profile_.sites[s.index()].parent) {
    auto known = stack_of_site_.find(s.value);
    if (known != stack_of_site_.end()) {
      prefix = known->second;
      break;
    }
    path.push_back(s);
  }
  for (; !path.empty(); path.pop_back()) {
    prefix = add_location(profile_.sites[path.back().index()].location, prefix);
    stack_of_site_.emplace(path.back().value, prefix);
  }
  return prefix;
}

void FirefoxTablesWriter::write(JsonWriter& json) const {
  const auto nulls = [&](std::string_view name, const auto& rows) { json.array(name, rows, [&](const auto&) { json.null(); }); };
  const auto numbers = [&](std::string_view name, const auto& rows, auto value) {
    json.array(name, rows, [&](const auto& row) { json.number(value(row)); });
  };
  const auto positives = [&](std::string_view name, const auto& rows, auto value, int64_t least) {
    json.array(name, rows, [&](const auto& row) { number_or_null(json, value(row), value(row) >= least); });
  };
  json.begin_object("stackTable");
  numbers("frame", stacks_, [](const Pair& row) { return row.first; });
  positives("prefix", stacks_, [](const Pair& row) { return row.second; }, 0);
  write_length(json, stacks_.size());
  json.end_object();

  json.begin_object("frameTable");
  numbers("address", frames_, [](const Frame& row) { return row.address; });
  numbers("inlineDepth", frames_, [](const Frame& row) { return row.depth; });
  numbers("category", frames_, [](const Frame& row) { return row.category; });
  numbers("subcategory", frames_, [](const Frame&) { return 0; });
  numbers("func", frames_, [](const Frame& row) { return row.func; });
  nulls("nativeSymbol", frames_);
  nulls("innerWindowID", frames_);
  positives("line", frames_, [](const Frame& row) { return row.line; }, 1);
  positives("column", frames_, [](const Frame& row) { return row.column; }, 1);
  write_length(json, frames_.size());
  json.end_object();

  json.begin_object("funcTable");
  json.array("isJS", funcs_, [&](const Func& row) { json.boolean(row.is_js); });
  json.array("relevantForJS", funcs_, [&](const Func&) { json.boolean(false); });
  numbers("name", funcs_, [](const Func& row) { return row.name; });
  numbers("resource", funcs_, [](const Func& row) { return row.resource; });
  positives("fileName", funcs_, [](const Func& row) { return row.file; }, 0);
  positives("lineNumber", funcs_, [](const Func& row) { return row.line; }, 1);
  nulls("columnNumber", funcs_);
  write_length(json, funcs_.size());
  json.end_object();

  json.begin_object("resourceTable");
  numbers("lib", resources_, [](int64_t lib) { return lib; });
  numbers("name", resources_, [&](int64_t lib) { return shared_.text(shared_.lib_name(lib)); });
  nulls("host", resources_);
  numbers("type", resources_, [](int64_t) { return 1; });
  write_length(json, resources_.size());
  json.end_object();

  json.begin_object("nativeSymbols");
  for (std::string_view column : {"libIndex", "address", "name", "functionSize"}) nulls(column, std::vector<int>());
  write_length(json, 0);
  json.end_object();
}

}  // namespace cprof::format
