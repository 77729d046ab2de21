// The compiler walks each executable segment from low to high addresses. Where an FDE holds it runs the FDE's program
// and adds a row per change; between FDEs it looks at what the gap is: padding (belongs to the function behind it), call
// stubs, the program's entry code (the root of every stack), a signal trampoline, or unknown code (no row, so that the
// unwinder tries the frame pointer).
//
// Which FDE holds: of two that overlap, the one that starts later holds from its start on, as a binary search over
// start addresses would find it. Sources come best first; a later one only fills what the earlier left open.
#include "unwind/cfi/table_compiler.h"

#include <algorithm>
#include <memory>
#include <optional>

namespace cprof::unwind {
namespace {

// Only __builtin_eh_return needs the exception handler's data registers, 0 and 1, in the frame.
bool saves_eh_data(const FrameState& state) {
  return state.registers[0].kind == RegisterRule::kOffset && state.registers[1].kind == RegisterRule::kOffset;
}

constexpr uint64_t kPageLimit = 1 << 20;          // 4 GiB of text
constexpr uint64_t kShortGapBytes = 16;           // alignment of functions
constexpr uint64_t kEntryCodeBytes = 128;         // ld.so's _start and _dl_start_user take 0x60
constexpr uint64_t kSearchedGapBytes = 64 * 1024; // for a signal trampoline

struct Candidate {
  uint64_t start = 0, end = 0;
  uint32_t place = 0;
};

// Reads text a chunk at a time; callers ask for rising addresses.
class TextWindow {
 public:
  explicit TextWindow(const CompileInput& input) : input_(input) {}

  std::optional<std::byte> byte_at(uint64_t svma, uint64_t segment_end) {
    if (svma < start_ || svma - start_ >= bytes_.size()) load(svma, segment_end);
    if (svma < start_ || svma - start_ >= bytes_.size()) return std::nullopt;
    return bytes_[svma - start_];
  }

 private:
  void load(uint64_t svma, uint64_t segment_end) {
    start_ = svma;
    bytes_.resize(std::min<uint64_t>(segment_end - svma, 64 * 1024));
    if (!input_.read_text || !input_.read_text(svma, bytes_)) bytes_.clear();
  }

  const CompileInput& input_;
  uint64_t start_ = 0;
  std::vector<std::byte> bytes_;
};

// Sorted and disjoint: of equal starts the first, and each ends where the next begins.
void make_disjoint(std::vector<Candidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](auto& a, auto& b) { return a.start < b.start; });
  auto same_start = [](auto& a, auto& b) { return a.start == b.start; };
  candidates.erase(std::unique(candidates.begin(), candidates.end(), same_start), candidates.end());
  for (size_t i = 0; i + 1 < candidates.size(); i++)
    candidates[i].end = std::min(candidates[i].end, candidates[i + 1].start);
}

// Adds those of `more` that begin in a gap of `all`.
void fill_gaps(std::vector<Candidate>& all, std::vector<Candidate> more) {
  std::vector<Candidate> fitting;
  auto next = all.begin();
  for (Candidate candidate : more) {
    while (next != all.end() && next->start <= candidate.start) ++next;
    if (next != all.begin() && std::prev(next)->end > candidate.start) continue;
    if (next != all.end()) candidate.end = std::min(candidate.end, next->start);
    fitting.push_back(candidate);
  }
  all.insert(all.end(), fitting.begin(), fitting.end());
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.start < b.start; });
}

class Compiler {
 public:
  Compiler(const CompileInput& input, const std::vector<CfiSource>& sources) : input_(input), window_(input), known_code_(input.known_code) {
    std::ranges::sort(known_code_, {}, &KnownCode::start);
    for (const CfiSource& source : sources) {
      sections_.push_back(std::make_unique<CfiSection>(source));
      programs_.push_back(std::make_unique<FrameProgram>(source));
    }
  }

  CompiledTable run() {
    set_text();
    collect();
    RowBuilder builder(base_, page_count_);
    builder_ = &builder;
    auto fde = candidates_.begin();
    for (auto [start, end] : text_) {
      uint64_t cursor = start;
      for (; fde != candidates_.end() && fde->start < end; ++fde) {
        uint64_t from = gap(cursor, fde->start, end, true);
        compile_fde(*fde, from);
        cursor = fde->end;
      }
      gap(cursor, end, end, false);
    }
    for (auto& section : sections_) result_.stats.broken_entries += section->broken_entries();
    result_.rows = builder.finish();
    return std::move(result_);
  }

 private:
  void set_text() {
    text_ = input_.text;
    std::erase_if(text_, [](auto& segment) { return segment.first >= segment.second; });
    std::sort(text_.begin(), text_.end());
    if (text_.empty()) return;
    base_ = text_.front().first & ~(kPageBytes - 1);
    uint64_t limit = base_ + kPageLimit * kPageBytes;
    if (limit < base_) limit = ~uint64_t{0} & ~(kPageBytes - 1);
    uint64_t highest = base_;
    for (auto& [start, end] : text_) {
      start = std::clamp(start, highest, limit);  // overlapping segments: the first holds
      end = std::clamp(end, start, limit);
      highest = end;
    }
    std::erase_if(text_, [](auto& segment) { return segment.first >= segment.second; });
    page_count_ = static_cast<uint32_t>((highest - base_ + kPageBytes - 1) / kPageBytes);
  }

  void collect() {
    for (size_t i = 0; i < sections_.size(); i++) {
      std::vector<Candidate> found;
      sections_[i]->for_each_fde([&](const Fde& fde) {
        if (fde.start >= fde.end) return;
        auto segment = text_of(fde.start);
        if (!segment || (fde.start == 0 && !sections_[i]->source().is_eh_frame)) {
          result_.stats.outside_text++;
          return;
        }
        uint32_t place = static_cast<uint32_t>(i << FdeRange::kSourceShift | fde.offset);
        found.push_back({fde.start, std::min(fde.end, segment->second), place});
      });
      make_disjoint(found);
      if (i == 0)
        candidates_ = std::move(found);
      else
        fill_gaps(candidates_, std::move(found));
    }
    result_.fdes.reserve(candidates_.size());
    for (const Candidate& c : candidates_)
      result_.fdes.push_back({static_cast<uint32_t>(c.start - base_), static_cast<uint32_t>(c.end - c.start), c.place});
  }

  std::optional<std::pair<uint64_t, uint64_t>> text_of(uint64_t svma) const {
    for (auto& segment : text_)
      if (svma >= segment.first && svma < segment.second) return segment;
    return std::nullopt;
  }

  // from: where the FDE's first row begins, at or below its start when padding precedes it.
  void compile_fde(const Candidate& candidate, uint64_t from) {
    uint32_t source = candidate.place >> FdeRange::kSourceShift;
    auto fde = sections_[source]->fde_at(candidate.place & (FdeRange::kMaxSectionBytes - 1));
    if (!fde) return;
    uint64_t broken_from = 0;
    bool first = true;
    bool is_sound = programs_[source]->run(*fde, [&](uint64_t start, uint64_t end, const FrameState& state) {
      cp_rule rule = input_.machine->classify(state, *fde->cie);
      rule.is_eh_return = saves_eh_data(state);
      if (rule.cfa_kind == CP_CFA_COMPLEX) result_.stats.complex_rows++;
      builder_->add(first ? from : start, std::min(end, candidate.end), rule);
      first = false;
      return end < candidate.end;
    }, broken_from);
    if (is_sound) return;
    result_.stats.broken_programs++;
    cp_rule bad{};
    bad.cfa_kind = CP_CFA_BAD;
    builder_->add(broken_from, candidate.end, bad);
  }

  // Adds what is known about [start, end) without FDE and gives the address where the next FDE's first row may begin.
  uint64_t gap(uint64_t start, uint64_t end, uint64_t segment_end, bool has_next) {
    if (start >= end) return end;
    uint64_t next_start = end;
    if (has_next) {
      auto last = window_.byte_at(end - 1, segment_end);
      if (last && input_.machine->is_padding(*last)) next_start = end - start < kShortGapBytes ? start : end - 1;
    }
    std::vector<KnownCode> pieces;
    auto known = std::partition_point(known_code_.begin(), known_code_.end(), [&](const KnownCode& k) { return k.end <= start; });
    for (; known != known_code_.end() && known->start < end; ++known) pieces.push_back(*known);
    if (input_.entry >= start && input_.entry < end) pieces.push_back(entry_code(end));
    if (pieces.empty() && next_start == start) return start;
    if (end - start >= kShortGapBytes) find_trampoline(start, end, pieces);
    std::stable_sort(pieces.begin(), pieces.end(), [](auto& a, auto& b) { return a.start < b.start; });
    for (const KnownCode& piece : pieces) builder_->add(std::max(piece.start, start), std::min(piece.end, end), piece.rule);
    if (!pieces.empty()) next_start = std::max(next_start, std::min(pieces.back().end, end));
    return next_start;
  }

  KnownCode entry_code(uint64_t gap_end) const {
    KnownCode code{input_.entry, std::min(gap_end, input_.entry + kEntryCodeBytes), {}};
    code.rule.cfa_kind = CP_CFA_STOP;
    return code;
  }

  // A signal handler returns to the trampoline's first byte, and return addresses are looked up one lower.
  void find_trampoline(uint64_t start, uint64_t end, std::vector<KnownCode>& pieces) {
    if (end - start > kSearchedGapBytes || !input_.read_text) return;
    std::vector<std::byte> code(end - start);
    if (!input_.read_text(start, code)) return;
    for (std::span<const std::byte> pattern : input_.machine->sigreturn_code) {
      auto found = std::search(code.begin(), code.end(), pattern.begin(), pattern.end());
      if (found == code.end()) continue;
      uint64_t at = start + static_cast<uint64_t>(found - code.begin());
      KnownCode piece{std::max(start, at - 1), at + pattern.size(), {}};
      piece.rule.cfa_kind = CP_CFA_SIGNAL;
      pieces.push_back(piece);
    }
  }

  const CompileInput& input_;
  std::vector<std::unique_ptr<CfiSection>> sections_;
  std::vector<std::unique_ptr<FrameProgram>> programs_;
  std::vector<std::pair<uint64_t, uint64_t>> text_;
  std::vector<Candidate> candidates_;
  uint64_t base_ = 0;
  uint32_t page_count_ = 0;
  RowBuilder* builder_ = nullptr;
  TextWindow window_;
  std::vector<KnownCode> known_code_;
  CompiledTable result_;
};

}  // namespace

CompiledTable compile_rows(const CompileInput& input, const std::vector<CfiSource>& sources) {
  return Compiler(input, sources).run();
}

}  // namespace cprof::unwind
