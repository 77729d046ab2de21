#include "cli/sql_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "cli/text_layout.h"
#include "cli/verb.h"

namespace cprof::cli {
namespace {

using store::SqlBlob;
using store::SqlValue;

std::string hex(const SqlBlob& blob) {
  std::string text;
  for (std::byte byte : blob.bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

// The shortest text that reads back as the same number, and is seen to be no integer.
std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

struct PlainText {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return real_text(value); }
  std::string operator()(std::string_view text) const { return std::string(text); }
  std::string operator()(const SqlBlob& blob) const { return hex(blob); }
};

class SqlOutput : public store::RowSink {
 public:
  explicit SqlOutput(FILE* to) : to_(to) {}

 protected:
  Result<void> put(std::string_view text) {
    if (fwrite(text.data(), 1, text.size(), to_) != text.size()) return fail_errno("output", errno);
    return {};
  }
  void say_cut(bool was_cut, uint64_t rows) const {
    if (was_cut) say(fmt::format("cprof: only the first {} rows are shown; --limit shows more", rows));
  }

 private:
  FILE* to_;
};

class CsvOutput final : public SqlOutput {
 public:
  using SqlOutput::SqlOutput;

  Result<void> begin(std::span<const std::string> columns) override {
    rows_ = 0;
    line_.clear();
    for (size_t i = 0; i < columns.size(); ++i) add(i, columns[i], true);
    return put(line_ + "\r\n");
  }
  Result<void> row(std::span<const SqlValue> values) override {
    ++rows_;
    line_.clear();
    for (size_t i = 0; i < values.size(); ++i)
      add(i, std::visit(PlainText(), values[i]), std::holds_alternative<std::string_view>(values[i]));
    return put(line_ + "\r\n");
  }
  Result<void> end(bool was_cut) override {
    say_cut(was_cut, rows_);
    return {};
  }

 private:
  // An empty text is quoted, so that it differs from NULL.
  void add(size_t index, std::string_view field, bool is_text) {
    if (index > 0) line_ += ',';
    if (!(is_text && field.empty()) && field.find_first_of(",\"\r\n") == std::string_view::npos) {
      line_ += field;
      return;
    }
    line_ += '"';
    for (char c : field) line_ += c == '"' ? "\"\"" : std::string_view(&c, 1);
    line_ += '"';
  }

  std::string line_;
  uint64_t rows_ = 0;
};

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = first_code_point(text.substr(i)).bytes;
    if (length == 0)
      result += "\\ufffd";
    else if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      result += text.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return result + "\"";
}

// What JSON has no number for is null.
struct JsonText {
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return std::isfinite(value) ? real_text(value) : "null"; }
  std::string operator()(std::string_view text) const { return json_string(text); }
  std::string operator()(const SqlBlob& blob) const { return "\"" + hex(blob) + "\""; }
};

class JsonOutput final : public SqlOutput {
 public:
  using SqlOutput::SqlOutput;

  Result<void> begin(std::span<const std::string> columns) override {
    rows_ = 0;
    keys_.clear();
    for (const std::string& column : columns) keys_.push_back(json_string(unique(column)) + ":");
    names_.clear();
    return put("[");
  }
  Result<void> row(std::span<const SqlValue> values) override {
    std::string line = rows_++ == 0 ? "\n{" : ",\n{";
    for (size_t i = 0; i < values.size(); ++i)
      line += (i > 0 ? "," : "") + keys_[i] + std::visit(JsonText(), values[i]);
    return put(line + "}");
  }
  Result<void> end(bool was_cut) override {
    say_cut(was_cut, rows_);
    return put(rows_ == 0 ? "]\n" : "\n]\n");
  }

 private:
  // Two columns of one name would be one key.
  std::string unique(const std::string& column) {
    std::string name = column;
    for (int n = 2; std::ranges::find(names_, name) != names_.end(); ++n) name = fmt::format("{}_{}", column, n);
    names_.push_back(name);
    return name;
  }

  std::vector<std::string> keys_, names_;
  uint64_t rows_ = 0;
};

// The widths come of the first rows; a later value that is wider pushes its line out.
class TableOutput final : public SqlOutput {
 public:
  TableOutput(FILE* to, size_t columns) : SqlOutput(to), columns_(columns) {}

  Result<void> begin(std::span<const std::string> columns) override {
    rows_ = 0;
    held_.clear();
    has_begun_ = false;
    header_.clear();
    widths_.clear();
    for (const std::string& column : columns) header_.push_back({printable(column), false});
    return {};
  }
  Result<void> row(std::span<const SqlValue> values) override {
    ++rows_;
    std::vector<Field> line;
    for (const SqlValue& value : values) line.push_back(field(value));
    if (has_begun_) return put_line(line);
    held_.push_back(std::move(line));
    return held_.size() < kHeld ? Result<void>() : flush();
  }
  Result<void> end(bool was_cut) override {
    if (!has_begun_) TRY(flush());
    say_cut(was_cut, rows_);
    return {};
  }

 private:
  static constexpr size_t kHeld = 1000, kNarrowest = 24;
  struct Field {
    std::string text;
    bool is_number = false;
  };

  static Field field(const SqlValue& value) {
    if (std::holds_alternative<std::monostate>(value)) return {"NULL", false};
    if (const auto* blob = std::get_if<SqlBlob>(&value)) return {"x'" + hex(*blob) + "'", false};
    return {printable(std::visit(PlainText(), value)), !std::holds_alternative<std::string_view>(value)};
  }

  Result<void> flush() {
    has_begun_ = true;
    widths_.assign(header_.size(), 0);
    measure(header_);
    for (const auto& line : held_) measure(line);
    shrink();
    // A heading stands over its numbers.
    for (size_t i = 0; i < header_.size(); ++i)
      header_[i].is_number = std::ranges::any_of(held_, [i](const auto& line) { return line[i].is_number; });
    TRY(put_line(header_));
    std::vector<Field> rule;
    for (size_t width : widths_) rule.push_back({std::string(width, '-'), false});
    TRY(put_line(rule));
    for (const auto& line : held_) TRY(put_line(line));
    held_.clear();
    return {};
  }

  void measure(const std::vector<Field>& line) {
    for (size_t i = 0; i < line.size(); ++i) widths_[i] = std::max(widths_[i], columns_of(line[i].text));
  }

  // The widest columns give way until the line fits.
  void shrink() {
    if (columns_ == 0 || widths_.empty()) return;
    size_t total = 2 * (widths_.size() - 1);
    for (size_t width : widths_) total += width;
    while (total > columns_) {
      auto widest = std::ranges::max_element(widths_);
      if (*widest <= kNarrowest) return;
      --*widest;
      --total;
    }
  }

  Result<void> put_line(const std::vector<Field>& line) {
    std::string text;
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string shown = line[i].is_number ? line[i].text : shortened(line[i].text, widths_[i]);
      text += line[i].is_number ? right_aligned(shown, widths_[i]) : padded(shown, widths_[i]);
      if (i + 1 < line.size()) text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return put(text + "\n");
  }

  size_t columns_;
  std::vector<Field> header_;
  std::vector<std::vector<Field>> held_;
  std::vector<size_t> widths_;
  bool has_begun_ = false;
  uint64_t rows_ = 0;
};

}  // namespace

std::optional<SqlFormat> sql_format_from(std::string_view name) {
  if (name == "table") return SqlFormat::kTable;
  if (name == "csv") return SqlFormat::kCsv;
  if (name == "json") return SqlFormat::kJson;
  return std::nullopt;
}

std::unique_ptr<store::RowSink> make_sql_output(SqlFormat format, FILE* to, size_t columns) {
  if (format == SqlFormat::kCsv) return std::make_unique<CsvOutput>(to);
  if (format == SqlFormat::kJson) return std::make_unique<JsonOutput>(to);
  return std::make_unique<TableOutput>(to, columns);
}

}  // namespace cprof::cli
