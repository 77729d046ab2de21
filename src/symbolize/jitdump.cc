#include "symbolize/jitdump.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/byte_reader.h"

namespace cprof::symbolize {
namespace {

constexpr uint32_t kMagic = 0x4a695444, kSwappedMagic = 0x4454694a, kVersion = 1;
constexpr uint32_t kHeaderBytes = 40, kRecordHeaderBytes = 16, kLoadBytes = 40, kMoveBytes = 48;
constexpr uint32_t kMostName = 64 * 1024, kMostLines = 16 << 20;
constexpr size_t kMostCodes = 4 << 20, kMostLineRows = 32 << 20;
constexpr size_t kMostLookedAt = 1 << 16;   // codes that may lie at one address
constexpr uint64_t kProcessorClock = 1;    // in the header's flags
enum RecordId : uint32_t { kCodeLoad, kCodeMove, kCodeDebugInfo, kCodeClose, kCodeUnwinding };

std::unexpected<Error> broken(uint64_t offset, std::string_view what) {
  return fail(fmt::format("jitdump: {} at byte {}", what, offset));
}

}  // namespace

Result<std::span<const std::byte>> JitDump::payload(uint64_t bytes) {
  buffer_.resize(bytes);
  if (read_(offset_ + kRecordHeaderBytes, buffer_) != bytes) return broken(offset_, "a record cut off");
  return std::span<const std::byte>(buffer_);
}

Result<void> JitDump::read_header() {
  std::byte bytes[kHeaderBytes];
  if (read_(0, bytes) != sizeof bytes) return broken(0, "no header");
  const uint32_t magic = ByteReader(bytes).u32();
  if (magic != kMagic && magic != kSwappedMagic) return broken(0, "no jitdump's magic number");
  swap_ = magic == kSwappedMagic;
  ByteReader reader(bytes, swap_);
  reader.u32();
  const uint32_t version = reader.u32(), total = reader.u32();
  if (version != kVersion) return broken(4, fmt::format("version {}, only 1 is known,", version));
  if (total < kHeaderBytes) return broken(8, "a header too short");
  reader.skip(20);  // machine, padding, pid, time
  has_times_ = !(reader.u64() & kProcessorClock);
  offset_ = total;
  return {};
}

Result<void> JitDump::read_until(uint64_t size) {
  if (offset_ == 0) {
    if (size < kHeaderBytes) return {};
    TRY(read_header());
  }
  while (TRY(read_record(size))) {
  }
  return {};
}

// False: the rest is still to be written.
Result<bool> JitDump::read_record(uint64_t size) {
  if (size < kRecordHeaderBytes || offset_ > size - kRecordHeaderBytes) return false;
  std::byte header[kRecordHeaderBytes];
  if (read_(offset_, header) != sizeof header) return false;
  ByteReader reader(header, swap_);
  const uint32_t id = reader.u32(), total = reader.u32();
  if (total < kRecordHeaderBytes) return broken(offset_, "a record shorter than its header");
  if (total > size - offset_) return false;
  const uint32_t bytes = total - kRecordHeaderBytes;
  time_ns_ = reader.u64();
  if (id == kCodeLoad) TRY(take_load(bytes));
  else if (id == kCodeMove) TRY(take_move(bytes));
  else if (id == kCodeDebugInfo) TRY(take_lines(bytes));
  offset_ += total;
  return true;
}

void JitDump::add(const Code& code) {
  is_sorted_ = false;
  codes_.push_back(code);
  codes_.back().from_ns = time_ns_;
}

// pid, tid, vma, code_addr, code_size, code_index, the name with its 0, the code.
Result<void> JitDump::take_load(uint32_t bytes) {
  if (bytes < kLoadBytes + 1) return broken(offset_, "a load record too short");
  if (codes_.size() >= kMostCodes) return broken(offset_, "too many records");
  const auto data = TRY(payload(std::min(bytes, kLoadBytes + kMostName)));
  ByteReader reader(data, swap_);
  reader.skip(16);
  const uint64_t address = reader.u64(), size = reader.u64(), index = reader.u64();
  std::string_view name(reinterpret_cast<const char*>(data.data()) + kLoadBytes, data.size() - kLoadBytes);
  name = name.substr(0, name.find('\0'));
  if (address + size < address) return broken(offset_, "code beyond the end of memory");
  Code code{.name = texts_.intern(name), .start = address, .size = size, .written_at = address};
  if (const auto told = lines_to_come_.find(address); told != lines_to_come_.end()) {
    code.first_line = told->second.first;
    code.line_count = told->second.count;
    lines_to_come_.erase(told);
  }
  by_index_[index] = static_cast<uint32_t>(codes_.size());
  add(code);
  return {};
}

// pid, tid, vma, old_code_addr, new_code_addr, code_size, code_index.
Result<void> JitDump::take_move(uint32_t bytes) {
  if (bytes < kMoveBytes) return broken(offset_, "a move record too short");
  if (codes_.size() >= kMostCodes) return broken(offset_, "too many records");
  ByteReader reader(TRY(payload(kMoveBytes)), swap_);
  reader.skip(24);
  const uint64_t address = reader.u64(), size = reader.u64(), index = reader.u64();
  const auto moved = by_index_.find(index);
  if (moved == by_index_.end()) return {};  // of code from before the dump began
  if (address + size < address) return broken(offset_, "code beyond the end of memory");
  Code code = codes_[moved->second];
  if (address != code.start) codes_[moved->second].until_ns = time_ns_;
  code.until_ns = kLast;
  code.start = address;
  code.size = size;
  moved->second = static_cast<uint32_t>(codes_.size());
  add(code);
  return {};
}

// code_addr, nr_entry, then address, line, discriminator, file name with its 0; "\xff": the file before.
Result<void> JitDump::take_lines(uint32_t bytes) {
  if (bytes > kMostLines || lines_.size() > kMostLineRows) return {};
  ByteReader reader(TRY(payload(bytes)), swap_);
  const uint64_t address = reader.u64(), count = reader.u64();
  Lines lines{.first = static_cast<uint32_t>(lines_.size())};
  StringId file = texts_.intern("");
  for (uint64_t i = 0; i < count && reader.ok() && !reader.at_end(); i++) {
    Line line{.address = reader.u64(), .line = reader.u32()};
    reader.u32();
    const std::string_view rest(reinterpret_cast<const char*>(buffer_.data()) + reader.position(), reader.remaining());
    const size_t length = rest.find('\0');
    if (!reader.ok() || length == rest.npos) break;
    const std::string_view name = rest.substr(0, length);
    reader.skip(length + 1);
    if (name != "\xff") file = texts_.intern(name);
    line.file = file;
    lines_.push_back(line);
  }
  lines.count = static_cast<uint32_t>(lines_.size()) - lines.first;
  std::sort(lines_.begin() + lines.first, lines_.end(), [](const Line& a, const Line& b) { return a.address < b.address; });
  lines_to_come_[address] = lines;
  return {};
}

void JitDump::sort() {
  if (std::exchange(is_sorted_, true)) return;
  std::vector<Interval> newest, oldest;
  by_start_.resize(codes_.size());
  for (uint32_t i = 0; i < codes_.size(); i++) {
    const uint64_t end = codes_[i].start + std::max<uint64_t>(codes_[i].size, 1);
    newest.push_back({codes_[i].start, end, i, i});
    oldest.push_back({codes_[i].start, end, kMostCodes - i, i});
    by_start_[i] = i;
  }
  last_ = IntervalMap(std::move(newest));
  first_ = IntervalMap(std::move(oldest));
  std::ranges::sort(by_start_, {}, [&](uint32_t i) { return std::pair(codes_[i].start, i); });
  ends_.clear();
  for (uint32_t i : by_start_) {
    const uint64_t end = codes_[i].start + std::max<uint64_t>(codes_[i].size, 1);
    ends_.push_back(ends_.empty() ? end : std::max(end, ends_.back()));
  }
}

bool JitDump::changes(uint64_t address) {
  sort();
  const uint32_t last = last_.find(address);
  return has_times_ && last != IntervalMap::kNone && (last != first_.find(address) || codes_[last].until_ns != kLast);
}

// Of what lay there the newest that was there by then, unless it had been moved away. Code may run a little before it is
// told of: the first that ever lay there is taken for all times before.
std::optional<uint32_t> JitDump::code_at(uint64_t address, uint64_t time_ns) {
  std::optional<uint32_t> found, first;
  auto at = std::ranges::upper_bound(by_start_, address, {}, [&](uint32_t i) { return codes_[i].start; }) - by_start_.begin();
  for (size_t looked_at = 0; at > 0 && ends_[static_cast<size_t>(at) - 1] > address && looked_at < kMostLookedAt; at--, looked_at++) {
    const uint32_t i = by_start_[static_cast<size_t>(at) - 1];
    if (address - codes_[i].start >= std::max<uint64_t>(codes_[i].size, 1)) continue;
    if (!first || i < *first) first = i;
    if (codes_[i].from_ns <= time_ns && (!found || i > *found)) found = i;
  }
  if (!found) return first;
  const uint64_t until_ns = codes_[*found].until_ns;
  return until_ns == kLast || time_ns < until_ns ? found : std::nullopt;
}

std::optional<JitDump::Entry> JitDump::find(uint64_t address, uint64_t time_ns) {
  sort();
  uint32_t found = last_.find(address);
  if (found == IntervalMap::kNone) return std::nullopt;
  if (changes(address)) {
    const auto then = code_at(address, time_ns);
    if (!then) return std::nullopt;
    found = *then;
  }
  const Code& code = codes_[found];
  Entry entry{.name = texts_[code.name], .file = {}, .line = 0, .start = code.start, .size = code.size, .code = found};
  const auto lines = std::span(lines_).subspan(code.first_line, code.line_count);
  const auto after = std::ranges::upper_bound(lines, address - code.start + code.written_at, {}, &Line::address);
  if (after == lines.begin()) return entry;
  entry.file = texts_[std::prev(after)->file];
  entry.line = std::prev(after)->line;
  return entry;
}

}  // namespace cprof::symbolize
