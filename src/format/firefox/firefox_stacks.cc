#include "format/firefox/firefox_stacks.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/frame_text.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

using profile::FrameKind;

constexpr uint16_t kMaxInlined = 500;

// null when the column is not there or too short.
int32_t at(const IndexColumn& column, int32_t row) {
  return row >= 0 && static_cast<size_t>(row) < column.size() ? column[static_cast<size_t>(row)] : kNoIndex;
}

int64_t at(const NumberColumn& column, int32_t row) {
  return row >= 0 && static_cast<size_t>(row) < column.size() ? column[static_cast<size_t>(row)] : kNoNumber;
}

uint32_t positive(int32_t value) { return value > 0 ? static_cast<uint32_t>(value) : 0; }

// "0x1f3a", "fun_1f3a": an address in place of a name.
bool is_address(std::string_view name) {
  if (!name.starts_with("0x") || name.size() < 3) return profile::is_stand_in(name);
  return name.find_first_not_of("0123456789abcdefABCDEF", 2) == name.npos;
}

// A breakpad id is a build-id's first 16 bytes, the first three fields as little-endian numbers, and an age.
std::string build_id_of(const FirefoxLib& lib) {
  std::string id = lib.code_id;
  std::ranges::transform(id, id.begin(), [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  constexpr size_t kBreakpadDigits = 32;
  if (!id.empty() || lib.breakpad_id.size() < kBreakpadDigits) return id;
  constexpr size_t kOrder[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  for (size_t byte : kOrder) id += lib.breakpad_id.substr(2 * byte, 2);
  std::ranges::transform(id, id.begin(), [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  return id;
}

}  // namespace

Result<void> FirefoxStacks::check() const {
  const auto& stacks = tables_.stacks;
  const size_t size = stacks.frame.size();
  const size_t prefixes = std::max(stacks.prefix.size(), stacks.prefix_offset.size());
  if (prefixes != size) return fail(fmt::format("stackTable has {} frames and {} prefixes", size, prefixes));
  for (size_t i = 0; i < size; ++i) {
    const auto row = static_cast<int32_t>(i);
    if (prefix(row) >= row || prefix(row) < kNoIndex) return fail(fmt::format("stackTable: row {} comes before its prefix", i));
  }
  return {};
}

int32_t FirefoxStacks::prefix(int32_t stack) const {
  if (tables_.stacks.prefix_offset.empty()) return at(tables_.stacks.prefix, stack);
  const int32_t offset = at(tables_.stacks.prefix_offset, stack);
  return offset > 0 ? stack - offset : kNoIndex;
}

Result<StringId> FirefoxStacks::string(int32_t index) const {
  if (index == kNoIndex) return profile::kNoText;
  if (static_cast<size_t>(index) >= strings_.size())
    return fail(fmt::format("string {} is not in the table of {}", index, strings_.size()));
  return strings_[static_cast<size_t>(index)];
}

Result<profile::CallSiteId> FirefoxStacks::site(int32_t stack) {
  if (stack == kNoIndex) return profile::CallSiteId();
  if (static_cast<size_t>(stack) >= tables_.stacks.frame.size())
    return fail(fmt::format("stack {} is not in the table of {}", stack, tables_.stacks.frame.size()));
  rows_.resize(tables_.stacks.frame.size());
  path_.clear();
  for (int32_t s = stack; s != kNoIndex && !rows_[static_cast<size_t>(s)].is_made; s = prefix(s)) path_.push_back(s);
  for (; !path_.empty(); path_.pop_back()) TRY(make(path_.back()));
  return rows_[static_cast<size_t>(stack)].site;
}

bool FirefoxStacks::is_inlined_in(int32_t frame, int32_t outer) const {
  const int32_t depth = at(tables_.frames.inline_depth, frame);
  return depth > 0 && at(tables_.frames.inline_depth, outer) == depth - 1 &&
         at(tables_.frames.address, frame) == at(tables_.frames.address, outer);
}

Result<void> FirefoxStacks::make(int32_t stack) {
  Row& row = rows_[static_cast<size_t>(stack)];
  const int32_t outer = prefix(stack);
  const Row* before = outer == kNoIndex ? nullptr : &rows_[static_cast<size_t>(outer)];
  const bool is_inlined = before && before->inlined < kMaxInlined &&
                          is_inlined_in(at(tables_.stacks.frame, stack), at(tables_.stacks.frame, outer));
  row.base = is_inlined ? before->base : stack;
  row.inlined = is_inlined ? static_cast<uint16_t>(before->inlined + 1) : uint16_t{0};
  row.parent = is_inlined ? before->parent : before ? before->site : profile::CallSiteId();
  row.site = builder_.site(row.parent, TRY(location(stack, row)));
  row.is_made = true;
  return {};
}

Result<profile::Line> FirefoxStacks::line(int32_t frame) {
  const int32_t func = at(tables_.frames.func, frame);
  if (func == kNoIndex || static_cast<size_t>(func) >= tables_.funcs.name.size())
    return fail(fmt::format("frame {} has no function", frame));
  const int32_t source = at(tables_.funcs.source, func);
  const int32_t file = source == kNoIndex ? at(tables_.funcs.file_name, func) : at(file_.source_files, source);
  profile::Function row{.start_line = positive(at(tables_.funcs.line, func))};
  row.name = TRY(string(at(tables_.funcs.name, func)));
  if (row.name == profile::kNoText) row.name = builder_.intern(profile::kUnknownFrame);
  row.system_name = row.name;
  row.file = TRY(string(file));
  return profile::Line{builder_.function(row), positive(at(tables_.frames.line, frame)),
                       positive(at(tables_.frames.column, frame))};
}

Result<profile::LocationId> FirefoxStacks::location(int32_t stack, const Row& row) {
  lines_.clear();
  int32_t s = stack;
  for (uint16_t i = 0; i <= row.inlined; ++i, s = prefix(s)) lines_.push_back(TRY(line(at(tables_.stacks.frame, s))));
  const int32_t frame = at(tables_.stacks.frame, row.base);
  profile::Location l{.mapping = mapping(frame), .kind = kind(frame)};
  const int64_t address = at(tables_.frames.address, frame);
  if (address <= 0) return builder_.named_location(l.mapping, l.kind, lines_);
  l.address = l.file_address = static_cast<uint64_t>(address);
  const auto& function = builder_.profile().functions[lines_[0].function.index()];
  if (lines_.size() == 1 && is_address(builder_.profile().text(function.name))) lines_.clear();
  std::string key = fmt::format("{} {} {}", l.mapping.value, address, static_cast<int>(l.kind));
  for (const profile::Line& line : lines_) key += fmt::format(" {} {}", line.function.value, line.line);
  auto [it, is_new] = locations_.try_emplace(std::move(key));
  if (is_new) {
    it->second = builder_.add_location(l, {});
    if (!lines_.empty()) builder_.set_lines(it->second, lines_);
  }
  return it->second;
}

profile::MappingId FirefoxStacks::mapping(int32_t frame) {
  int32_t lib = at(tables_.frames.lib, frame);
  if (lib == kNoIndex) lib = at(tables_.resource_libs, at(tables_.funcs.resource, at(tables_.frames.func, frame)));
  if (lib != kNoIndex) lib += first_lib_;
  if (lib < 0 || static_cast<size_t>(lib) >= file_.libs.size()) return {};
  const FirefoxLib& row = file_.libs[static_cast<size_t>(lib)];
  return builder_.mapping({.path = builder_.intern(row.path.empty() ? row.name : row.path),
                           .build_id = builder_.intern(build_id_of(row))});
}

FrameKind FirefoxStacks::kind(int32_t frame) const {
  const int32_t category = at(tables_.frames.category, frame);
  const bool is_known = category >= 0 && static_cast<size_t>(category) < file_.categories.size();
  const std::string_view name = is_known ? std::string_view(file_.categories[static_cast<size_t>(category)]) : "";
  if (name == "Kernel") return FrameKind::kKernel;
  if (name == "JIT" || at(tables_.funcs.is_js, at(tables_.frames.func, frame)) == 1) return FrameKind::kJit;
  return FrameKind::kUser;
}

}  // namespace cprof::format
