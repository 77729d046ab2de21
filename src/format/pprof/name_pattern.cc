// The pattern is parsed into a tree, the tree is laid out as steps of a non-deterministic automaton, and matching keeps
// the list of steps that are alive after each byte (Thompson's method): no backtracking, no recursion over the text.
#include "format/pprof/name_pattern.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>

namespace cprof::format {
namespace {

using ByteSet = std::bitset<256>;

constexpr size_t kMaxSteps = 20'000;
constexpr size_t kMaxPattern = 64 * 1024;
constexpr int kMaxNesting = 200;
constexpr int kMaxRepeat = 1000;
constexpr int kUnlimited = -1;

ByteSet set_of(std::string_view ranges) {  // "azAZ09__": pairs of first and last
  ByteSet set;
  for (size_t i = 0; i + 1 < ranges.size(); i += 2)
    for (int c = static_cast<unsigned char>(ranges[i]); c <= static_cast<unsigned char>(ranges[i + 1]); ++c) set.set(c);
  return set;
}

struct NamedSet {
  std::string_view name, ranges;
};
constexpr std::array<NamedSet, 3> kEscapeSets = {{{"d", "09"}, {"w", "azAZ09__"}, {"s", "\t\t\n\n\f\f\r\r  "}}};
constexpr std::array<NamedSet, 9> kClassSets = {{{"alpha", "azAZ"}, {"digit", "09"}, {"alnum", "azAZ09"},
                                                 {"lower", "az"}, {"upper", "AZ"}, {"word", "azAZ09__"},
                                                 {"space", "\t\r  "}, {"xdigit", "09afAF"}, {"punct", "!/:@[`{~"}}};
constexpr std::string_view kEscapeLetters = "tnrfva";
constexpr std::string_view kEscapeBytes = "\t\n\r\f\v\a";

struct Node {
  enum class Kind : uint8_t { kSet, kSequence, kChoice, kRepeat, kBegin, kEnd } kind = Kind::kSequence;
  ByteSet set;
  int min = 0, max = 0;
  std::vector<std::unique_ptr<Node>> parts;
};
using NodePtr = std::unique_ptr<Node>;

NodePtr make(Node::Kind kind) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  return node;
}

// Recursive descent over the pattern; the first thing it does not know stops it.
class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {}

  Result<NodePtr> parse() {
    NodePtr node = choice(0);
    if (!error_.empty()) return fail(error_);
    if (at_ != text_.size()) return fail(fmt::format("unmatched ) at {}", at_));
    return node;
  }

 private:
  bool done() const { return at_ >= text_.size() || !error_.empty(); }
  char peek() const { return text_[at_]; }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  void stop(std::string_view why) {
    if (error_.empty()) error_ = fmt::format("{} at {}", why, at_);
  }

  NodePtr choice(int nesting) {
    const bool fold_case = fold_case_, dot_all = dot_all_;
    NodePtr node = make(Node::Kind::kChoice);
    if (nesting > kMaxNesting) stop("nested too deep");
    do {
      node->parts.push_back(sequence(nesting));
    } while (error_.empty() && take("|"));
    fold_case_ = fold_case;
    dot_all_ = dot_all;
    return node;
  }

  NodePtr sequence(int nesting) {
    NodePtr node = make(Node::Kind::kSequence);
    while (!done() && peek() != '|' && peek() != ')') {
      NodePtr part = atom(nesting);
      if (part && !done() && repeats()) part = repeat(std::move(part));
      if (!done() && part && part->kind == Node::Kind::kRepeat && repeats()) stop("repetition of a repetition");
      if (part) node->parts.push_back(std::move(part));
    }
    return node;
  }

  NodePtr atom(int nesting) {
    if (take("(")) return group(nesting);
    if (take("^") || take("\\A")) return make(Node::Kind::kBegin);
    if (take("$") || take("\\z")) return make(Node::Kind::kEnd);
    NodePtr node = make(Node::Kind::kSet);
    if (take("[")) {
      node->set = bracket();
    } else if (take(".")) {
      node->set.set();
      if (!dot_all_) node->set.reset('\n');
    } else if (take("\\")) {
      node->set = escape();
    } else {
      node->set.set(static_cast<unsigned char>(text_[at_++]));
    }
    if (fold_case_) fold(node->set);
    return node;
  }

  static void fold(ByteSet& set) {
    for (int c = 'a'; c <= 'z'; ++c) {
      const bool any = set[c] || set[c - 32];
      set[c] = any;
      set[c - 32] = any;
    }
  }

  // After "(": capturing or not is all the same here; "(?i)" sets flags for the rest of the enclosing group.
  NodePtr group(int nesting) {
    if (take("?P<") || (text_.substr(at_).starts_with("?<") && take("?<"))) {
      while (!done() && peek() != '>') ++at_;
      take(">");
    } else if (take("?")) {
      for (bool on = true; !done() && peek() != ':' && peek() != ')'; ++at_) {
        if (peek() == '-') on = false;
        else if (peek() == 'i') fold_case_ = on;
        else if (peek() == 's') dot_all_ = on;
        else return stop("unknown group flag"), nullptr;
      }
      if (take(")")) return nullptr;
      take(":");
    }
    NodePtr node = choice(nesting + 1);
    if (!take(")")) stop("missing )");
    return node;
  }

  bool repeats() const {
    char c = peek();
    return c == '*' || c == '+' || c == '?' || (c == '{' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]));
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  int count() {
    int value = 0;
    while (!done() && is_digit(peek()) && value <= kMaxRepeat) value = value * 10 + (text_[at_++] - '0');
    if (value > kMaxRepeat) stop("repeated more than 1000 times");
    return value;
  }

  NodePtr repeat(NodePtr part) {
    NodePtr node = make(Node::Kind::kRepeat);
    char c = text_[at_++];
    node->min = c == '+' ? 1 : 0;
    node->max = c == '?' ? 1 : kUnlimited;
    if (c == '{') {
      node->min = node->max = count();
      if (take(",")) node->max = !done() && is_digit(peek()) ? count() : kUnlimited;
      if (!take("}") || (node->max != kUnlimited && node->max < node->min)) stop("bad repetition");
    }
    take("?");  // lazy or not: a full match does not care
    node->parts.push_back(std::move(part));
    return node;
  }

  // After the backslash.
  ByteSet escape() {
    ByteSet set;
    if (done()) return stop("trailing backslash"), set;
    char c = text_[at_++];
    for (const NamedSet& named : kEscapeSets) {
      if ((c | 0x20) != named.name[0]) continue;
      set = set_of(named.ranges);
      return c & 0x20 ? set : ~set;
    }
    if (size_t i = kEscapeLetters.find(c); i != kEscapeLetters.npos) return set.set(static_cast<unsigned char>(kEscapeBytes[i]));
    if (c == 'x') return hex_byte();
    bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    if (is_letter || is_digit(c)) stop("unknown escape");
    return set.set(static_cast<unsigned char>(c));
  }

  ByteSet hex_byte() {
    ByteSet set;
    unsigned value = 0;
    for (int i = 0; i < 2; ++i) {
      size_t digit = done() ? std::string_view::npos : std::string_view("0123456789abcdef").find(static_cast<char>(peek() | 0x20));
      if (digit == std::string_view::npos) return stop("bad \\x"), set;
      value = value * 16 + static_cast<unsigned>(digit);
      ++at_;
    }
    return set.set(value);
  }

  // After "[".
  ByteSet bracket() {
    ByteSet set;
    const bool negated = take("^");
    for (bool first = true; first || done() || peek() != ']'; first = false) {
      if (done()) return stop("missing ]"), set;
      if (take("[:")) {
        set |= named_class();
        continue;
      }
      ByteSet low = bracket_item();
      if (low.count() == 1 && text_.substr(at_).starts_with('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        add_range(set, low, bracket_item());
      } else {
        set |= low;
      }
      if (!error_.empty()) return set;
    }
    take("]");
    return negated ? ~set : set;
  }

  ByteSet bracket_item() {
    if (take("\\")) return escape();
    if (static_cast<signed char>(peek()) < 0) stop("a class with characters beyond ASCII");
    return ByteSet().set(static_cast<unsigned char>(text_[at_++]));
  }

  void add_range(ByteSet& set, const ByteSet& low, const ByteSet& high) {
    if (high.count() != 1 || low._Find_first() > high._Find_first()) return stop("bad range");
    for (size_t c = low._Find_first(); c <= high._Find_first(); ++c) set.set(c);
  }

  ByteSet named_class() {
    size_t end = text_.find(":]", at_);
    if (end != text_.npos) {
      std::string_view name = text_.substr(at_, end - at_);
      at_ = end + 2;
      for (const NamedSet& named : kClassSets)
        if (named.name == name) return set_of(named.ranges);
    }
    return stop("unknown class"), ByteSet();
  }

  std::string_view text_;
  size_t at_ = 0;
  bool fold_case_ = false, dot_all_ = false;
  std::string error_;
};

}  // namespace

// Lays the tree out as steps; each part goes on at the step that comes after it.
class PatternCompiler {
 public:
  explicit PatternCompiler(NamePattern& pattern) : pattern_(pattern) {}

  bool compile(const Node& root) {
    emit(root);
    add(NamePattern::Op::kMatch);
    pattern_.seen_.resize(pattern_.steps_.size());
    return !too_large_;
  }

 private:
  using Op = NamePattern::Op;

  uint32_t here() const { return static_cast<uint32_t>(pattern_.steps_.size()); }

  uint32_t add(Op op) {
    if (pattern_.steps_.size() >= kMaxSteps) too_large_ = true;
    if (too_large_) return 0;
    pattern_.steps_.push_back({op, 0, here() + 1, 0});
    return here() - 1;
  }

  void emit(const Node& node) {
    if (++emitted_ > kMaxSteps) too_large_ = true;  // empty parts, repeated, make no steps
    if (too_large_) return;
    switch (node.kind) {
      case Node::Kind::kSet: return emit_set(node.set);
      case Node::Kind::kBegin: add(Op::kBegin); return;
      case Node::Kind::kEnd: add(Op::kEnd); return;
      case Node::Kind::kSequence:
        for (const auto& part : node.parts) emit(*part);
        return;
      case Node::Kind::kChoice: return emit_choice(node);
      case Node::Kind::kRepeat: return emit_repeat(node);
    }
  }

  void emit_set(const ByteSet& set) {
    uint32_t step = add(Op::kSet);
    if (too_large_) return;
    pattern_.steps_[step].set = static_cast<uint32_t>(pattern_.sets_.size());
    pattern_.sets_.push_back(set);
  }

  void emit_choice(const Node& node) {
    std::vector<uint32_t> exits;
    for (size_t i = 0; i + 1 < node.parts.size() && !too_large_; ++i) {
      uint32_t split = add(Op::kSplit);
      emit(*node.parts[i]);
      exits.push_back(add(Op::kJump));
      if (!too_large_) pattern_.steps_[split].other = here();
    }
    emit(*node.parts.back());
    if (too_large_) return;
    for (uint32_t exit : exits) pattern_.steps_[exit].next = here();
  }

  void emit_repeat(const Node& node) {
    const Node& part = *node.parts[0];
    for (int i = 0; i < node.min && !too_large_; ++i) emit(part);
    if (node.max == kUnlimited) {
      uint32_t split = add(Op::kSplit);
      emit(part);
      uint32_t back = add(Op::kJump);
      if (too_large_) return;
      pattern_.steps_[back].next = split;
      pattern_.steps_[split].other = here();
      return;
    }
    std::vector<uint32_t> splits;
    for (int i = node.min; i < node.max && !too_large_; ++i) {
      splits.push_back(add(Op::kSplit));
      emit(part);
    }
    if (too_large_) return;
    for (uint32_t split : splits) pattern_.steps_[split].other = here();
  }

  NamePattern& pattern_;
  size_t emitted_ = 0;
  bool too_large_ = false;
};

Result<NamePattern> NamePattern::compile(std::string_view pattern) {
  if (pattern.size() > kMaxPattern) return fail("longer than 64 KiB");
  NodePtr root = TRY(PatternParser(pattern).parse());
  NamePattern result;
  if (!PatternCompiler(result).compile(*root)) return fail("needs more than 20,000 steps");
  return result;
}

// Adds what can be reached from a step without eating a byte.
void NamePattern::follow(uint32_t first, size_t at, size_t size, std::vector<uint32_t>& list) {
  pending_.assign(1, first);
  while (!pending_.empty()) {
    uint32_t step = pending_.back();
    pending_.pop_back();
    if (seen_[step] == round_) continue;
    seen_[step] = round_;
    const Step& s = steps_[step];
    switch (s.op) {
      case Op::kSet:
      case Op::kMatch: list.push_back(step); break;
      case Op::kSplit: pending_.push_back(s.other); [[fallthrough]];
      case Op::kJump: pending_.push_back(s.next); break;
      case Op::kBegin: if (at == 0) pending_.push_back(s.next); break;
      case Op::kEnd: if (at == size) pending_.push_back(s.next); break;
    }
  }
}

bool NamePattern::matches(std::string_view text) {
  now_.clear();
  ++round_;
  follow(0, 0, text.size(), now_);
  for (size_t at = 0; at < text.size() && !now_.empty(); ++at) {
    then_.clear();
    ++round_;
    for (uint32_t step : now_)
      if (steps_[step].op == Op::kSet && sets_[steps_[step].set][static_cast<unsigned char>(text[at])])
        follow(steps_[step].next, at + 1, text.size(), then_);
    now_.swap(then_);
  }
  for (uint32_t step : now_)
    if (steps_[step].op == Op::kMatch) return true;
  return false;
}

}  // namespace cprof::format
