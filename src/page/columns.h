// Columns of whole numbers as the page reads them: LEB128, signed ones in zigzag, texts as one blob and their lengths.
// Used by the payload encoder; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace cprof::page {

class Column {
 public:
  enum class Type : uint8_t { kUnsigned, kSigned, kBytes };

  Column(std::string name, Type type) : name_(std::move(name)), type_(type) {}

  void add(uint64_t value);
  void add_signed(int64_t value) { add(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63)); }
  void add_bytes(std::string_view bytes);

  const std::string& name() const { return name_; }
  std::string_view type_name() const;  // "varint", "svarint", "bytes": docs/page-payload.md
  uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string name_;
  Type type_;
  uint64_t count_ = 0;
  std::string bytes_;
};

// The columns of a payload in the order in which they were made; references stay valid.
class Columns {
 public:
  Column& make(std::string name, Column::Type type = Column::Type::kUnsigned) {
    return columns_.emplace_back(std::move(name), type);
  }
  const std::deque<Column>& all() const { return columns_; }

 private:
  std::deque<Column> columns_;
};

}  // namespace cprof::page
