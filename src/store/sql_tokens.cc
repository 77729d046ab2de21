#include "store/sql_tokens.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace cprof::store {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
// As SQLite has it: every byte of a multi-byte character may stand in a name.
bool starts_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool continues_word(char c) { return starts_word(c) || is_digit(c) || c == '$'; }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // The token that begins at `at`, which lies inside the text.
  Token next(size_t at) const {
    const char c = text_[at];
    if (is_blank(c)) return token(TokenKind::kSpace, at, while_true(at, is_blank));
    if (starts_with(at, "--")) return token(TokenKind::kSpace, at, std::min(text_.find('\n', at), text_.size()));
    if (starts_with(at, "/*")) return token(TokenKind::kSpace, at, after(text_.find("*/", at + 2), 2));
    if (c == '\'') return token(TokenKind::kString, at, after_quote(at, '\''));
    if ((c == 'x' || c == 'X') && starts_with(at + 1, "'"))
      return token(TokenKind::kString, at, after_quote(at + 1, '\''));
    if (c == '"' || c == '`') return token(TokenKind::kName, at, after_quote(at, c));
    if (c == '[') return token(TokenKind::kName, at, after(text_.find(']', at), 1));
    if (starts_word(c)) return token(TokenKind::kWord, at, while_true(at, continues_word));
    if (is_digit(c) || (c == '.' && at + 1 < text_.size() && is_digit(text_[at + 1])))
      return token(TokenKind::kNumber, at, after_number(at));
    if (c == '$' || c == ':' || c == '@' || c == '?') return parameter(at);
    return token(TokenKind::kOther, at, after_operator(at));
  }

 private:
  Token token(TokenKind kind, size_t begin, size_t end) const {
    return {kind, text_.substr(begin, end - begin), begin};
  }

  bool starts_with(size_t at, std::string_view what) const {
    return at <= text_.size() && text_.substr(at).starts_with(what);
  }

  template <typename Predicate>
  size_t while_true(size_t at, Predicate&& holds) const {
    while (at < text_.size() && holds(text_[at])) ++at;
    return at;
  }

  size_t after(size_t found, size_t length) const {
    return found == std::string_view::npos ? text_.size() : found + length;
  }

  // A doubled quote stands for itself.
  size_t after_quote(size_t at, char quote) const {
    for (++at; at < text_.size(); ++at) {
      if (text_[at] != quote) continue;
      if (at + 1 < text_.size() && text_[at + 1] == quote) {
        ++at;
        continue;
      }
      return at + 1;
    }
    return text_.size();
  }

  size_t after_number(size_t at) const {
    if (starts_with(at, "0x") || starts_with(at, "0X")) return while_true(at + 2, continues_word);
    for (; at < text_.size(); ++at) {
      const bool is_sign = (text_[at] == '+' || text_[at] == '-') && upper(text_[at - 1]) == 'E';
      if (!continues_word(text_[at]) && text_[at] != '.' && !is_sign) break;
    }
    return at;
  }

  Token parameter(size_t at) const {
    const size_t end = while_true(at + 1, continues_word);
    return token(end == at + 1 && text_[at] != '?' ? TokenKind::kOther : TokenKind::kParameter, at, end);
  }

  size_t after_operator(size_t at) const {
    static constexpr std::array<std::string_view, 11> kLong = {"->>", "->", "||", "<=", ">=", "<>",
                                                               "!=",  "==", "<<", ">>", "|>"};
    for (std::string_view mark : kLong)
      if (starts_with(at, mark)) return at + mark.size();
    return at + 1;
  }

  std::string_view text_;
};

}  // namespace

bool Token::is_word(std::string_view upper_case) const {
  return kind == TokenKind::kWord && std::ranges::equal(text, upper_case, {}, upper);
}

std::vector<Token> tokenize(std::string_view text, size_t origin) {
  std::vector<Token> tokens;
  const Scanner scanner(text);
  for (size_t at = 0; at < text.size(); at += tokens.back().text.size()) {
    tokens.push_back(scanner.next(at));
    tokens.back().origin += origin;
  }
  return tokens;
}

Script split_statements(std::string_view text) {
  Script script;
  const Scanner scanner(text);
  size_t begin = 0, end = 0;  // of what is neither blank nor comment in the current statement
  bool is_empty = true;
  for (size_t at = 0; at < text.size();) {
    const Token token = scanner.next(at);
    at += token.text.size();
    if (token.kind == TokenKind::kSpace) continue;
    if (token.is(";")) {
      if (!is_empty) script.statements.push_back({text.substr(begin, end - begin), begin});
      is_empty = true;
      continue;
    }
    if (is_empty) begin = token.origin;
    is_empty = false;
    end = at;
  }
  if (!is_empty) script.statements.push_back({text.substr(begin, end - begin), begin});
  script.is_complete = is_empty;
  return script;
}

std::string_view unquoted(std::string_view name) {
  if (name.size() < 2 || (name[0] != '"' && name[0] != '`' && name[0] != '[')) return name;
  return name.substr(1, name.size() - 2);
}

TextPosition position_at(std::string_view text, size_t offset) {
  TextPosition position;
  for (char c : text.substr(0, std::min(offset, text.size()))) {
    if (c == '\n') {
      ++position.line;
      position.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
      ++position.column;
    }
  }
  return position;
}

}  // namespace cprof::store
