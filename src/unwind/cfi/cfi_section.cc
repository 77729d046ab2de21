#include "unwind/cfi/cfi_section.h"

#include <string_view>

namespace cprof::unwind {
namespace {

// DW_EH_PE_*: low nibble the form, bits 4..6 what it is relative to, bit 7 an indirection.
constexpr uint8_t kOmit = 0xff, kIndirect = 0x80, kAligned = 0x50;
constexpr uint64_t kMask32 = 0xffffffff;

std::optional<uint64_t> read_form(ByteReader& reader, uint8_t form, uint8_t address_size) {
  switch (form) {
    case 0x00: return address_size == 4 ? reader.u32() : reader.u64();
    case 0x01: return reader.uleb();
    case 0x02: return reader.u16();
    case 0x03: return reader.u32();
    case 0x04: return reader.u64();
    case 0x08: return address_size == 4 ? static_cast<uint64_t>(reader.read<int32_t>()) : reader.u64();
    case 0x09: return static_cast<uint64_t>(reader.sleb());
    case 0x0a: return static_cast<uint64_t>(reader.read<int16_t>());
    case 0x0b: return static_cast<uint64_t>(reader.read<int32_t>());
    case 0x0c: return reader.u64();
    default: return std::nullopt;
  }
}

// The letters after "z" in an augmentation string say what the augmentation data holds, in order.
bool read_augmentation(std::string_view letters, ByteReader& reader, const CfiSource& source, Cie& cie) {
  for (char letter : letters) {
    switch (letter) {
      case 'R': cie.fde_encoding = reader.u8(); break;
      case 'L': reader.u8(); break;
      case 'P': {
        uint8_t encoding = reader.u8();
        if (encoding == kOmit) break;
        // The personality routine itself is not needed, only the bytes it takes.
        CfiSection::read_pointer(reader, source, encoding & ~kIndirect, cie.address_size);
        break;
      }
      case 'S': cie.is_signal_frame = true; break;
      case 'B': cie.uses_b_key = true; break;
      case 'G': break;  // aarch64 memory tagging
      default: return true;  // the data's length lets us skip what we do not know
    }
  }
  return reader.ok();
}

}  // namespace

std::optional<uint64_t> CfiSection::read_pointer(ByteReader& reader, const CfiSource& source, uint8_t encoding,
                                                 uint8_t address_size) {
  if (encoding == kOmit || (encoding & kIndirect)) return std::nullopt;
  if ((encoding & 0x70) == kAligned) {
    uint64_t misalignment = (source.svma + reader.position()) % address_size;
    if (misalignment) reader.skip(address_size - misalignment);
    encoding = 0;
  }
  uint64_t field = source.svma + reader.position();
  auto value = read_form(reader, encoding & 0x0f, address_size);
  if (!value || !reader.ok()) return std::nullopt;
  switch (encoding & 0x70) {
    case 0x00: break;
    case 0x10: *value += field; break;
    case 0x20: *value += source.text_svma; break;
    case 0x30: *value += source.data_svma; break;
    default: return std::nullopt;  // funcrel has no meaning in an FDE
  }
  return address_size == 4 ? *value & kMask32 : *value;
}

std::optional<CfiSection::Entry> CfiSection::read_entry(uint64_t offset) const {
  ByteReader reader(source_.bytes);
  reader.seek(offset);
  Entry entry;
  entry.offset = offset;
  uint64_t length = reader.u32();
  entry.is_64bit = length == kMask32;
  if (entry.is_64bit) length = reader.u64();
  // 0 ends .eh_frame (crtend.o's terminator); 0xfffffff0 and up are reserved.
  if (!reader.ok() || length == 0 || (!entry.is_64bit && length >= 0xfffffff0)) return std::nullopt;
  entry.id_position = reader.position();
  if (length > reader.remaining()) return std::nullopt;
  entry.next = entry.id_position + length;
  // .eh_frame has a 4-byte id in both formats; .debug_frame's has the format's size.
  entry.id = entry.is_64bit && !source_.is_eh_frame ? reader.u64() : reader.u32();
  entry.body = reader.position();
  if (!reader.ok() || entry.body > entry.next) return Entry{offset, entry.next, entry.next, 0, entry.next, false};
  return entry;
}

bool CfiSection::is_cie(const Entry& entry) const {
  if (source_.is_eh_frame) return entry.id == 0;
  return entry.id == (entry.is_64bit ? ~uint64_t{0} : kMask32);
}

std::optional<Cie> CfiSection::parse_cie(const Entry& entry) const {
  ByteReader reader(std::span(source_.bytes).first(entry.next));
  reader.seek(entry.body);
  Cie cie;
  uint8_t version = reader.u8();
  if (version != 1 && version != 3 && version != 4) return std::nullopt;
  std::string_view augmentation = reader.cstring();
  if (version == 4) {
    cie.address_size = reader.u8();
    if (reader.u8() != 0) return std::nullopt;  // segment selectors
    if (cie.address_size != 4 && cie.address_size != 8) return std::nullopt;
  }
  if (augmentation == "eh") {  // gcc 2: a pointer follows
    reader.skip(cie.address_size);
    augmentation = {};
  }
  cie.code_align = reader.uleb();
  cie.data_align = reader.sleb();
  cie.return_register = version == 1 ? reader.u8() : static_cast<uint32_t>(reader.uleb());
  if (augmentation.starts_with('z')) {
    cie.has_augmentation_data = true;
    uint64_t size = reader.uleb();
    uint64_t end = reader.position() + size;
    if (!reader.ok() || size > reader.remaining()) return std::nullopt;
    if (!read_augmentation(augmentation.substr(1), reader, source_, cie)) return std::nullopt;
    reader.seek(end);
  } else if (!augmentation.empty()) {
    return std::nullopt;  // without "z" unknown letters change the layout
  }
  if (!reader.ok()) return std::nullopt;
  cie.instructions = reader.bytes(reader.remaining());
  return cie;
}

const Cie* CfiSection::cie_of(const Entry& fde) {
  uint64_t offset = source_.is_eh_frame ? fde.id_position - fde.id : fde.id;
  auto [it, is_new] = cies_.try_emplace(offset);
  if (!is_new) return it->second.get();
  auto entry = read_entry(offset);
  if (!entry || entry->next > source_.bytes.size() || !is_cie(*entry)) return nullptr;
  if (auto cie = parse_cie(*entry)) it->second = std::make_unique<Cie>(*cie);
  return it->second.get();
}

std::optional<Fde> CfiSection::parse_fde(const Entry& entry) {
  const Cie* cie = cie_of(entry);
  if (!cie) return std::nullopt;
  ByteReader reader(std::span(source_.bytes).first(entry.next));
  reader.seek(entry.body);
  Fde fde;
  fde.offset = entry.offset;
  fde.cie = cie;
  auto start = read_pointer(reader, source_, cie->fde_encoding, cie->address_size);
  // The length has the same form, relative to nothing.
  auto size = read_pointer(reader, source_, cie->fde_encoding & 0x0f, cie->address_size);
  if (!start || !size || *size > ~uint64_t{0} - *start) return std::nullopt;
  fde.start = *start;
  fde.end = *start + *size;
  if (cie->has_augmentation_data) reader.skip(reader.uleb());
  if (!reader.ok()) return std::nullopt;
  fde.instructions = reader.bytes(reader.remaining());
  return fde;
}

std::optional<Fde> CfiSection::fde_at(uint64_t offset) {
  auto entry = read_entry(offset);
  if (!entry || is_cie(*entry)) return std::nullopt;
  return parse_fde(*entry);
}

void CfiSection::for_each_fde(const std::function<void(const Fde&)>& visit) {
  uint64_t offset = 0;
  while (offset + 4 <= source_.bytes.size()) {
    auto entry = read_entry(offset);
    if (!entry) {
      // A zero length ends .eh_frame when loaded; the linker may leave one between inputs, so step over it.
      ByteReader reader(source_.bytes);
      reader.seek(offset);
      if (reader.u32() != 0) {
        broken_++;
        return;
      }
      if (source_.ends_at_zero) return;
      offset += 4;
      continue;
    }
    offset = entry->next;
    if (is_cie(*entry)) continue;
    if (auto fde = parse_fde(*entry))
      visit(*fde);
    else
      broken_++;
  }
}

}  // namespace cprof::unwind
