// Rust v0 mangling, one method a production of RFC 2603's grammar. It prints while it parses; a back reference parses the
// earlier text again, which can grow exponentially, so steps, depth and output are budgeted. While `mute_` is set
// nothing is printed and back references are not followed.
#include <cctype>
#include <vector>

#include "symbolize/rust_names.h"

namespace cprof::symbolize {
namespace {

constexpr size_t kMaxSteps = 400'000;
constexpr size_t kMaxOutput = 256 << 10;
constexpr unsigned kMaxDepth = 400;

struct Identifier {
  std::string_view text;
  bool punycode = false;
};

constexpr std::string_view kBasicTypes[26] = {"i8",  "bool", "char", "f64", "str",  "f32", "",    "u8",  "isize",
                                              "usize", "",   "i32",  "u32", "i128", "u128", "_",  "",    "",
                                              "i16", "u16",  "()",   "...", "",     "i64", "u64", "!"};

std::string_view basic_type(char c) { return c >= 'a' && c <= 'z' ? kBasicTypes[c - 'a'] : std::string_view{}; }

// RFC 3492 with Rust's '_' as the delimiter; false when malformed.
bool decode_punycode(std::string_view text, std::string& out) {
  constexpr uint32_t kBase = 36, kMin = 1, kMax = 26, kSkew = 38;
  size_t delimiter = text.rfind('_');
  std::vector<uint32_t> points;
  if (delimiter != text.npos) points.assign(text.begin(), text.begin() + static_cast<ptrdiff_t>(delimiter));
  std::string_view digits = delimiter == text.npos ? text : text.substr(delimiter + 1);
  if (text.size() > 4096) return false;

  uint64_t n = 128, i = 0, bias = 72, damp = 700;
  for (size_t at = 0; at < digits.size();) {
    uint64_t old = i, weight = 1;
    for (uint64_t k = kBase;; k += kBase) {
      if (at >= digits.size()) return false;
      char c = digits[at++];
      if (!islower(static_cast<unsigned char>(c)) && !isdigit(static_cast<unsigned char>(c))) return false;
      uint64_t digit = isdigit(static_cast<unsigned char>(c)) ? static_cast<uint64_t>(c - '0') + 26 : static_cast<uint64_t>(c - 'a');
      i += digit * weight;
      uint64_t threshold = k <= bias ? kMin : k >= bias + kMax ? kMax : k - bias;
      if (digit < threshold) break;
      weight *= kBase - threshold;
      if (i > 0xffffffff || weight > 0xffffffff) return false;
    }
    uint64_t count = points.size() + 1, delta = (i - old) / damp;
    damp = 2;
    delta += delta / count;
    uint64_t k = 0;
    for (; delta > ((kBase - kMin) * kMax) / 2; k += kBase) delta /= kBase - kMin;
    bias = k + (kBase - kMin + 1) * delta / (delta + kSkew);
    n += i / count;
    i %= count;
    if (n > 0x10ffff) return false;
    points.insert(points.begin() + static_cast<ptrdiff_t>(i++), static_cast<uint32_t>(n));
  }
  for (uint32_t point : points) {
    if (!append_utf8(out, point)) return false;
  }
  return true;
}

class Parser {
 public:
  Parser(std::string_view text, bool short_form) : text_(text), short_(short_form) {}

  std::optional<std::string> symbol() {
    if (isdigit(static_cast<unsigned char>(peek()))) return std::nullopt;  // a version of the encoding to come
    path(true);
    if (ok_ && isupper(static_cast<unsigned char>(peek()))) {  // the instantiating crate
      mute_++;
      path(true);
      mute_--;
    }
    std::string_view rest = text_.substr(at_);
    if (!ok_ || (!rest.empty() && rest[0] != '.' && rest[0] != '$')) return std::nullopt;
    if (!rest.starts_with(".llvm.") && !short_) out_ += rest;
    return std::move(out_);
  }

 private:
  class Scope {  // one level of recursion, one step
   public:
    explicit Scope(Parser& parser) : parser_(parser) {
      if (++parser.depth_ > kMaxDepth || ++parser.steps_ > kMaxSteps || parser.out_.size() > kMaxOutput) parser.ok_ = false;
    }
    ~Scope() { parser_.depth_--; }

   private:
    Parser& parser_;
  };

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() {
    if (at_ >= text_.size()) ok_ = false;
    return at_ < text_.size() ? text_[at_++] : '\0';
  }
  bool eat(char c) { return peek() == c && ok_ ? (at_++, true) : false; }
  void print(std::string_view text) {
    if (!mute_ && ok_) out_ += text;
  }
  void print_number(uint64_t value) { print(std::to_string(value)); }

  // "_" -> 0, "0_" -> 1, ...
  uint64_t base62() {
    if (eat('_')) return 0;
    uint64_t value = 0;
    while (ok_ && !eat('_')) {
      char c = next();
      uint64_t digit = 0;
      if (isdigit(static_cast<unsigned char>(c))) digit = static_cast<uint64_t>(c - '0');
      else if (islower(static_cast<unsigned char>(c))) digit = static_cast<uint64_t>(c - 'a') + 10;
      else if (isupper(static_cast<unsigned char>(c))) digit = static_cast<uint64_t>(c - 'A') + 36;
      else ok_ = false;
      if (__builtin_mul_overflow(value, uint64_t{62}, &value) || __builtin_add_overflow(value, digit, &value)) ok_ = false;
    }
    return value + 1;
  }
  uint64_t optional_base62(char tag) {
    if (!eat(tag)) return 0;
    uint64_t value = base62();
    return value == UINT64_MAX ? (ok_ = false, 0) : value + 1;
  }

  uint64_t decimal() {
    if (!isdigit(static_cast<unsigned char>(peek()))) return ok_ = false, 0;
    if (eat('0')) return 0;
    uint64_t value = 0;
    while (isdigit(static_cast<unsigned char>(peek())) && value < text_.size()) value = value * 10 + static_cast<uint64_t>(next() - '0');
    return value;
  }

  Identifier identifier() {
    Identifier result;
    result.punycode = eat('u');
    uint64_t length = decimal();
    eat('_');
    if (!ok_ || length > text_.size() - at_) return ok_ = false, result;
    result.text = text_.substr(at_, length);
    at_ += length;
    return result;
  }
  void print(const Identifier& name) {
    if (!name.punycode) return print(name.text);
    std::string decoded;
    if (!decode_punycode(name.text, decoded)) ok_ = false;
    print(decoded);
  }

  // Runs a production at an earlier place.
  template <typename Production>
  void back_reference(Production production) {
    size_t start = at_;
    uint64_t target = base62();
    if (!ok_ || target + 1 >= start) return void(ok_ = false);
    if (mute_) return;
    size_t saved = at_;
    at_ = target;
    production();
    at_ = saved;
  }

  // expression: generic arguments are written with "::<". open: leaves the list open for a dyn trait's bindings; the
  // result says whether one is.
  bool path(bool expression, bool open = false) {
    Scope scope(*this);
    if (!ok_) return false;
    switch (next()) {
      case 'C': {
        optional_base62('s');
        print(identifier());
        return false;
      }
      case 'M': return impl_path(), qualified(false), false;
      case 'X': return impl_path(), qualified(true), false;
      case 'Y': return qualified(true), false;
      case 'N': return nested(expression), false;
      case 'I': return generic(expression, open);
      case 'B': {
        bool is_open = false;
        back_reference([&] { is_open = path(expression, open); });
        return is_open;
      }
      default: return ok_ = false;
    }
  }

  void impl_path() {
    mute_++;
    optional_base62('s');
    path(false);
    mute_--;
  }

  void qualified(bool has_trait) {
    print("<");
    type();
    if (has_trait) {
      print(" as ");
      path(false);
    }
    print(">");
  }

  void nested(bool expression) {
    char space = next();
    if (!isalpha(static_cast<unsigned char>(space))) return void(ok_ = false);
    path(expression);
    uint64_t disambiguator = optional_base62('s');
    Identifier name = identifier();
    if (islower(static_cast<unsigned char>(space))) {
      if (name.text.empty()) return;
      print("::");
      return print(name);
    }
    print("::{");
    if (space == 'C') print("closure");
    else if (space == 'S') print("shim");
    else print(std::string_view(&space, 1));
    if (!name.text.empty()) {
      print(":");
      print(name);
    }
    print("#");
    print_number(disambiguator);
    print("}");
  }

  bool generic(bool expression, bool open) {
    path(expression);
    mute_ += short_;
    print(expression ? "::<" : "<");
    list([this] { generic_argument(); });
    if (!open) print(">");
    mute_ -= short_;
    return open && !short_;
  }

  // Items up to 'E', with commas; gives their number.
  template <typename Item>
  size_t list(Item item) {
    size_t count = 0;
    while (ok_ && !eat('E')) {
      if (count++) print(", ");
      item();
    }
    return count;
  }

  void generic_argument() {
    if (eat('L')) lifetime(base62());
    else if (eat('K')) constant();
    else type();
  }

  void lifetime(uint64_t index) {
    if (index == 0) return print("'_");
    if (index > bound_lifetimes_) return void(ok_ = false);
    uint64_t depth = bound_lifetimes_ - index;
    if (depth < 26) {
      char name[2] = {'\'', static_cast<char>('a' + depth)};
      return print(std::string_view(name, 2));
    }
    print("'_");
    print_number(depth);
  }

  template <typename Body>
  void with_binder(Body body) {
    uint64_t count = optional_base62('G');
    if (count > text_.size()) return void(ok_ = false);
    uint64_t saved = bound_lifetimes_;
    if (count > 0) {
      print("for<");
      for (uint64_t i = 0; i < count; i++) {
        if (i > 0) print(", ");
        bound_lifetimes_++;
        lifetime(1);
      }
      print("> ");
    }
    body();
    bound_lifetimes_ = saved;
  }

  void type() {
    Scope scope(*this);
    if (!ok_) return;
    char tag = peek();
    if (std::string_view basic = basic_type(tag); !basic.empty()) {
      at_++;
      return print(basic);
    }
    at_++;
    switch (tag) {
      case 'A':
        print("["), type(), print("; "), constant();
        return print("]");
      case 'S':
        print("["), type();
        return print("]");
      case 'T': {
        print("(");
        size_t count = list([this] { type(); });
        return print(count == 1 ? ",)" : ")");
      }
      case 'R': return reference("");
      case 'Q': return reference("mut ");
      case 'P': return print("*const "), type();
      case 'O': return print("*mut "), type();
      case 'F': return with_binder([this] { function(); });
      case 'D': return dyn();
      case 'B': return back_reference([this] { type(); });
      default:
        at_--;
        path(false);
    }
  }

  void reference(std::string_view mutability) {
    print("&");
    if (eat('L')) {
      if (uint64_t index = base62()) lifetime(index), print(" ");
    }
    print(mutability);
    type();
  }

  void function() {
    if (eat('U')) print("unsafe ");
    if (eat('K')) {
      print("extern \"");
      if (eat('C')) {
        print("C");
      } else {
        std::string abi(identifier().text);
        for (char& c : abi) c = c == '_' ? '-' : c;
        print(abi);
      }
      print("\" ");
    }
    print("fn(");
    list([this] { type(); });
    print(")");
    if (eat('u')) return;
    print(" -> ");
    type();
  }

  void dyn() {
    print("dyn ");
    with_binder([this] {
      for (size_t count = 0; ok_ && !eat('E'); count++) {
        if (count > 0) print(" + ");
        dyn_trait();
      }
    });
    if (!eat('L')) return void(ok_ = false);
    if (uint64_t index = base62()) print(" + "), lifetime(index);
  }

  void dyn_trait() {
    bool open = path(false, true);
    mute_ += short_;
    while (ok_ && eat('p')) {
      print(open ? ", " : "<");
      open = true;
      print(identifier());
      print(" = ");
      type();
    }
    if (open) print(">");
    mute_ -= short_;
  }

  void constant() {
    Scope scope(*this);
    if (!ok_) return;
    char tag = next();
    switch (tag) {
      case 'p': return print("_");
      case 'B': return back_reference([this] { constant(); });
      case 'b': return boolean();
      case 'c': return character();
      default:
        if (std::string_view("ahsitlmxynoj").find(tag) == std::string_view::npos) return void(ok_ = false);
        if (eat('n')) print("-");
        integer();
    }
  }

  std::string_view hex_digits() {
    size_t start = at_;
    while (isdigit(static_cast<unsigned char>(peek())) || (peek() >= 'a' && peek() <= 'f')) at_++;
    std::string_view digits = text_.substr(start, at_ - start);
    if (!eat('_')) ok_ = false;
    while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
    return digits;
  }
  uint64_t hex_value(std::string_view digits) {
    return digits.empty() || digits.size() > 16 ? (ok_ = false, 0) : std::stoull(std::string(digits), nullptr, 16);
  }
  void integer() {
    std::string_view digits = hex_digits();
    if (digits.size() <= 16) return print_number(hex_value(digits));
    print("0x");
    print(digits);
  }
  void boolean() {
    uint64_t value = hex_value(hex_digits());
    if (value > 1) ok_ = false;
    print(value ? "true" : "false");
  }
  void character() {
    uint64_t value = hex_value(hex_digits());
    std::string text = "'";
    if (value == '\'' || value == '\\') text += '\\';
    if (value < 0x20) text += "\\x" + std::to_string(value / 16) + "0123456789abcdef"[value % 16];
    else if (value > 0x10ffff || !append_utf8(text, static_cast<uint32_t>(value))) ok_ = false;
    print(text + "'");
  }

  std::string_view text_;
  bool short_ = false, ok_ = true;
  size_t at_ = 0, steps_ = 0;
  unsigned depth_ = 0, mute_ = 0;
  uint64_t bound_lifetimes_ = 0;
  std::string out_;
};

}  // namespace

std::optional<std::string> demangle_rust_v0(std::string_view mangled, bool short_form) {
  if (!mangled.starts_with("_R")) return std::nullopt;
  return Parser(mangled.substr(2), short_form).symbol();
}

}  // namespace cprof::symbolize
