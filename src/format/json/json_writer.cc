#include "format/json/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/utf8.h"

namespace cprof::format {
namespace {

constexpr size_t kFull = 64 * 1024;

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
}

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  if (size_t i = kSpecial.find(c); i != kSpecial.npos) {
    out += '\\';
    out += kLetters[i];
    return;
  }
  fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t size = first_code_point(text).bytes;
    if (size > 1)
      out += text.substr(0, size);
    else if (size == 0)
      out += kReplacementText;
    else
      append_escaped(out, text[0]);
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  out += '"';
}

void append_decimal(std::string& out, int64_t value, unsigned decimals) {
  if (value < 0) out += '-';
  const uint64_t magnitude = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  uint64_t unit = 1;
  for (unsigned i = 0; i < decimals; ++i) unit *= 10;
  fmt::format_to(std::back_inserter(out), "{}", magnitude / unit);
  uint64_t rest = magnitude % unit;
  if (rest == 0) return;
  for (; rest % 10 == 0; rest /= 10) --decimals;
  fmt::format_to(std::back_inserter(out), ".{:0{}}", rest, decimals);
}

void JsonWriter::flush_full() {
  if (buffer_.size() < kFull) return;
  if (result_) result_ = out_->write(buffer_);
  buffer_.clear();
}

void JsonWriter::break_line() {
  if (needs_break_) buffer_ += '\n';
  needs_break_ = false;
}

void JsonWriter::begin_value() {
  flush_full();
  if (needs_comma_) buffer_ += ',';
  needs_comma_ = true;
  break_line();
}

void JsonWriter::open(char bracket) {
  begin_value();
  buffer_ += bracket;
  needs_comma_ = false;
}

void JsonWriter::close(char bracket) {
  break_line();
  buffer_ += bracket;
  needs_comma_ = true;
}

void JsonWriter::key(std::string_view name) {
  text(name);
  buffer_ += ':';
  needs_comma_ = false;
}

void JsonWriter::text(std::string_view value) {
  begin_value();
  append_json_text(buffer_, value);
}

void JsonWriter::number(int64_t value) {
  begin_value();
  fmt::format_to(std::back_inserter(buffer_), "{}", value);
}

void JsonWriter::unsigned_number(uint64_t value) {
  begin_value();
  fmt::format_to(std::back_inserter(buffer_), "{}", value);
}

void JsonWriter::decimal(int64_t value, unsigned decimals) {
  begin_value();
  append_decimal(buffer_, value, decimals);
}

void JsonWriter::fixed(int64_t value, unsigned decimals) {
  begin_value();
  if (value < 0) buffer_ += '-';
  const uint64_t magnitude = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  uint64_t unit = 1;
  for (unsigned i = 0; i < decimals; ++i) unit *= 10;
  fmt::format_to(std::back_inserter(buffer_), "{}.{:0{}}", magnitude / unit, magnitude % unit, decimals);
}

void JsonWriter::real(double value) {
  if (!std::isfinite(value)) return null();
  begin_value();
  fmt::format_to(std::back_inserter(buffer_), "{}", value);
}

void JsonWriter::boolean(bool value) {
  begin_value();
  buffer_ += value ? "true" : "false";
}

void JsonWriter::null() {
  begin_value();
  buffer_ += "null";
}

Result<void> JsonWriter::finish() {
  break_line();
  if (result_) result_ = out_->write(buffer_);
  buffer_.clear();
  return std::move(result_);
}

}  // namespace cprof::format
