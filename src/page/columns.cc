#include "page/columns.h"

namespace cprof::page {

void Column::add(uint64_t value) {
  ++count_;
  while (value >= 0x80) {
    bytes_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

void Column::add_bytes(std::string_view bytes) {
  count_ += bytes.size();
  bytes_ += bytes;
}

std::string_view Column::type_name() const {
  switch (type_) {
    case Type::kUnsigned: return "varint";
    case Type::kSigned: return "svarint";
    case Type::kBytes: return "bytes";
  }
  return "";
}

}  // namespace cprof::page
