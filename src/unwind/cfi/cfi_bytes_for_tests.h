// Tests only: writes .eh_frame and .debug_frame by hand.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "unwind/cfi/table_compiler.h"

namespace cprof::unwind {

class Bytes {
 public:
  Bytes() = default;
  Bytes(std::initializer_list<int> values) {
    for (int v : values) u8(v);
  }
  Bytes& u8(int v) { return data_.push_back(static_cast<std::byte>(v)), *this; }
  Bytes& u16(uint64_t v) { return raw(v, 2); }
  Bytes& u32(uint64_t v) { return raw(v, 4); }
  Bytes& u64(uint64_t v) { return raw(v, 8); }
  Bytes& uleb(uint64_t v) {
    do {
      u8(static_cast<int>((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
      v >>= 7;
    } while (v);
    return *this;
  }
  Bytes& sleb(int64_t v) {
    for (bool more = true; more;) {
      int byte = static_cast<int>(v & 0x7f);
      v >>= 7;
      more = !((v == 0 && !(byte & 0x40)) || (v == -1 && (byte & 0x40)));
      u8(byte | (more ? 0x80 : 0));
    }
    return *this;
  }
  Bytes& text(const std::string& s) {
    for (char c : s) u8(c);
    return u8(0);
  }
  Bytes& add(const Bytes& other) { return data_.insert(data_.end(), other.data_.begin(), other.data_.end()), *this; }
  const std::vector<std::byte>& get() const { return data_; }
  size_t size() const { return data_.size(); }

 private:
  Bytes& raw(uint64_t v, int count) {
    for (int i = 0; i < count; i++) u8(static_cast<int>(v >> (8 * i) & 0xff));
    return *this;
  }
  std::vector<std::byte> data_;
};

// A section under construction. CIE and FDE bodies are given without length and id.
class SectionWriter {
 public:
  explicit SectionWriter(bool is_eh_frame, uint64_t svma = 0x100000, bool is_64bit = false)
      : is_eh_frame_(is_eh_frame), is_64bit_(is_64bit), svma_(svma) {}

  size_t cie(const Bytes& body) {
    size_t at = bytes_.size();
    uint64_t id = is_eh_frame_ ? 0 : is_64bit_ ? ~uint64_t{0} : 0xffffffff;
    entry(id, body);
    return at;
  }
  // x86-64 as compilers write it: CFA = rsp + 8, return address at CFA - 8.
  size_t usual_cie(const std::string& augmentation = "zR", int encoding = 0x00) {
    Bytes body{is_eh_frame_ ? 1 : 3};
    body.text(augmentation).uleb(1).sleb(-8).u8(16);
    if (augmentation.starts_with('z')) {
      Bytes data;
      for (char c : augmentation.substr(1))
        if (c == 'R') data.u8(encoding);
      body.uleb(data.size()).add(data);
    }
    return cie(body.add({0x0c, 7, 8, 0x90, 1}));
  }
  size_t fde(size_t cie_offset, uint64_t start, uint64_t size, const Bytes& instructions, bool has_augmentation = true) {
    Bytes body;
    body.u64(start).u64(size);
    if (has_augmentation) body.uleb(0);
    return raw_fde(cie_offset, body.add(instructions));
  }
  size_t raw_fde(size_t cie_offset, const Bytes& body) {
    size_t at = bytes_.size();
    uint64_t id_position = at + (is_64bit_ ? 12 : 4);
    entry(is_eh_frame_ ? id_position - cie_offset : cie_offset, body);
    return at;
  }
  Bytes& bytes() { return bytes_; }
  uint64_t field_svma(size_t extra) const { return svma_ + bytes_.size() + (is_64bit_ ? 12 : 4) + 4 + extra; }

  CfiSource source() const {
    CfiSource source;
    source.bytes = bytes_.get();
    source.svma = is_eh_frame_ ? svma_ : 0;
    source.is_eh_frame = is_eh_frame_;
    return source;
  }

 private:
  void entry(uint64_t id, const Bytes& body) {
    size_t id_size = is_64bit_ && !is_eh_frame_ ? 8 : 4;
    if (is_64bit_) bytes_.u32(0xffffffff).u64(body.size() + id_size);
    else bytes_.u32(body.size() + id_size);
    if (id_size == 8) bytes_.u64(id);
    else bytes_.u32(id);
    bytes_.add(body);
  }

  bool is_eh_frame_, is_64bit_;
  uint64_t svma_;
  Bytes bytes_;
};

}  // namespace cprof::unwind
