#include "object/kernel_symbols.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/ascii.h"
#include "base/file.h"

namespace cprof::object {
namespace {

constexpr size_t kMaxTextBytes = 512 << 20;
constexpr size_t kReadBytes = 256 << 10;
constexpr size_t kUsualNamesBytes = 4 << 20, kUsualEntries = 160 << 10;
constexpr uint64_t kMaxReach = 64 << 10;  // of a symbol that none of its kind follows
constexpr size_t kMaxNameBytes = std::numeric_limits<uint16_t>::max();
constexpr size_t kMaxModules = std::numeric_limits<uint16_t>::max();
constexpr size_t kMaxGenerated = 1 << 20;
constexpr std::string_view kGeneratedModule = "bpf";
constexpr size_t kMaxAllNamesBytes = std::numeric_limits<uint32_t>::max() - kMaxNameBytes;

struct Line {
  uint64_t address = 0;
  char type = 0;
  std::string_view name, module;
};

// "ffffffffc0a01000 t nfs_open\t[nfs]"
std::optional<Line> parse_line(std::string_view text) {
  Line line;
  size_t at = 0;
  for (; at < text.size() && hex_digit(text[at]) >= 0; ++at) {
    line.address = line.address << 4 | static_cast<uint64_t>(hex_digit(text[at]));
  }
  bool shape = at > 0 && at <= 16 && text.size() > at + 3 && text[at] == ' ' && text[at + 2] == ' ';
  if (!shape) return std::nullopt;
  line.type = text[at + 1];
  text.remove_prefix(at + 3);
  size_t tab = text.find('\t');
  line.name = text.substr(0, tab);
  if (tab != text.npos) {
    std::string_view module = text.substr(tab + 1);
    bool bracketed = module.size() > 2 && module.front() == '[' && module.back() == ']';
    if (!bracketed) return std::nullopt;
    line.module = module.substr(1, module.size() - 2);
  }
  if (line.name.empty() || line.name.size() > kMaxNameBytes) return std::nullopt;
  return line;
}

bool is_code(char type) { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }

size_t leading_underscores(std::string_view name) { return std::min(name.find_first_not_of('_'), name.size()); }

}  // namespace

struct KernelSymbols::Parser {
  KernelSymbols symbols;
  uint16_t last_module = 0;
  bool any_line = false, any_address = false;

  Parser() {
    symbols.names_.reserve(kUsualNamesBytes);
    symbols.entries_.reserve(kUsualEntries);
  }

  void add(const Line& line) {
    any_line = true;
    if (line.address == 0 || !is_code(line.type)) return;
    if (line.module == kGeneratedModule) return add_generated(line);
    auto module = module_index(line.module);
    if (!module || symbols.names_.size() > kMaxAllNamesBytes) {
      ++symbols.malformed_;
      return;
    }
    symbols.entries_.push_back({line.address, static_cast<uint32_t>(symbols.names_.size()),
                                static_cast<uint16_t>(line.name.size()), *module});
    symbols.names_.insert(symbols.names_.end(), line.name.begin(), line.name.end());
  }

  void add_generated(const Line& line) {
    if (symbols.generated_.size() < kMaxGenerated) symbols.generated_.push_back({line.address, 0, std::string(line.name)});
    else ++symbols.malformed_;
  }

  void add_line(std::string_view text) {
    if (text.empty()) return;
    auto line = parse_line(text);
    if (!line) {
      ++symbols.malformed_;
      return;
    }
    any_address |= line->address != 0;
    add(*line);
  }

  // Whole lines only; gives back the unfinished one at the end.
  std::string_view add_lines(std::string_view text) {
    for (size_t length; (length = text.find('\n')) != text.npos;) {
      if (length == 0) ++symbols.malformed_;
      add_line(text.substr(0, length));
      text.remove_prefix(length + 1);
    }
    return text;
  }

  // A line without an end is none of kallsyms'.
  std::string_view drop(std::string_view line) {
    ++symbols.malformed_;
    return line.substr(line.size());
  }

  KernelSymbols finish() {
    symbols.hidden_ = any_line && !any_address;
    symbols.sort_and_join_aliases();
    symbols.sort_generated();
    return std::move(symbols);
  }

  // The lines of one module come together, so the last one nearly always is it.
  std::optional<uint16_t> module_index(std::string_view name) {
    if (name.empty()) return uint16_t{0};
    auto& modules = symbols.modules_;
    if (modules[last_module] == name) return last_module;
    auto found = std::find(modules.begin(), modules.end(), name);
    if (found == modules.end()) {
      if (modules.size() > kMaxModules) return std::nullopt;
      found = modules.emplace(modules.end(), name);
    }
    last_module = static_cast<uint16_t>(found - modules.begin());
    return last_module;
  }
};

// Read in pieces: the text has some 10 MB, and memory touched for the first time costs more than the parsing.
Result<KernelSymbols> KernelSymbols::load(const std::string& path) {
  Fd fd = TRY(open_read(path));
  Parser parser;
  std::vector<char> buffer(kReadBytes);
  size_t kept = 0;  // of an unfinished line
  for (size_t total = 0; total <= kMaxTextBytes;) {
    ssize_t count = ::read(fd.get(), buffer.data() + kept, buffer.size() - kept);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(path);
    std::string_view text(buffer.data(), kept + static_cast<size_t>(count));
    if (count == 0) {
      parser.add_line(text);
      return parser.finish();
    }
    total += static_cast<size_t>(count);
    std::string_view rest = parser.add_lines(text);
    if (rest.size() == buffer.size()) rest = parser.drop(rest);
    memmove(buffer.data(), rest.data(), rest.size());
    kept = rest.size();
  }
  return fail(path + ": larger than the limit of " + std::to_string(kMaxTextBytes) + " bytes", EFBIG);
}

KernelSymbols KernelSymbols::parse(std::string_view text) {
  Parser parser;
  parser.add_line(parser.add_lines(text));
  return parser.finish();
}

// Of several names for one address the one with the fewest leading underscores, then the first.
bool KernelSymbols::is_better_alias(const Entry& candidate, const Entry& than) const {
  return leading_underscores(name_of(candidate)) < leading_underscores(name_of(than));
}

void KernelSymbols::sort_and_join_aliases() {
  // Names were stored in the file's order, so the offset makes it a stable order.
  auto before = [](const Entry& a, const Entry& b) {
    return a.start != b.start ? a.start < b.start : a.name_offset < b.name_offset;
  };
  if (!std::is_sorted(entries_.begin(), entries_.end(), before)) std::sort(entries_.begin(), entries_.end(), before);
  size_t kept = 0;
  for (const Entry& entry : entries_) {
    if (kept == 0 || entries_[kept - 1].start != entry.start)
      entries_[kept++] = entry;
    else if (is_better_alias(entry, entries_[kept - 1]))
      entries_[kept - 1] = entry;
  }
  entries_.resize(kept);
}

void KernelSymbols::sort_generated() {
  std::ranges::sort(generated_, {}, &GeneratedSymbol::start);
  const auto same = std::ranges::unique(generated_, {}, &GeneratedSymbol::start);
  generated_.erase(same.begin(), same.end());
  for (size_t i = 0; i < generated_.size(); ++i) {
    const uint64_t reach = generated_[i].start + std::min(kMaxReach, ~generated_[i].start);
    generated_[i].end = i + 1 < generated_.size() ? std::min(reach, generated_[i + 1].start) : reach;
  }
}

uint32_t KernelSymbols::search(uint64_t address) const {
  auto after = std::upper_bound(entries_.begin(), entries_.end(), address,
                                [](uint64_t a, const Entry& entry) { return a < entry.start; });
  if (after == entries_.begin()) return kNoEntry;
  const Entry& entry = after[-1];
  bool followed = after != entries_.end() && after->module == entry.module;
  if (!followed && address - entry.start >= kMaxReach) return kNoEntry;
  return static_cast<uint32_t>(after - entries_.begin() - 1);
}

std::optional<KernelSymbol> KernelSymbols::find(uint64_t address) const {
  if (entries_.empty() || address == 0) return std::nullopt;
  CacheSlot& slot = cache_[(address * 0x9e3779b97f4a7c15ull) >> 56];
  if (slot.address != address) slot = {address, search(address)};
  if (slot.entry == kNoEntry) return std::nullopt;
  const Entry& entry = entries_[slot.entry];
  return KernelSymbol{name_of(entry), modules_[entry.module], entry.start};
}

}  // namespace cprof::object
