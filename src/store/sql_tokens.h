// SQL text as tokens, and a script as statements: what the rewriter and the shell need to know of SQLite's grammar.
// Tokens are views into the text, which must outlive them. Pure; never fails: an open string or comment is one token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cprof::store {

enum class TokenKind : uint8_t {
  kSpace,   // blanks and comments
  kWord,    // keyword or name
  kName,    // "quoted", [quoted] or `quoted`
  kString,  // 'text' and x'blob'
  kNumber,
  kParameter,  // $x, :x, @x, ?1
  kOther,      // an operator or punctuation mark
};

struct Token {
  TokenKind kind = TokenKind::kSpace;
  std::string_view text;
  size_t origin = 0;  // where in the script it, or the macro call that gave it, begins

  bool is(std::string_view mark) const { return kind == TokenKind::kOther && text == mark; }
  bool is_word(std::string_view upper_case) const;
};

std::vector<Token> tokenize(std::string_view text, size_t origin = 0);

struct ScriptStatement {
  std::string_view text;  // without its ';' and the blanks around it
  size_t offset = 0;      // in the script
};

struct Script {
  std::vector<ScriptStatement> statements;  // none of them empty
  bool is_complete = true;                  // false: the last one has no ';'
};
Script split_statements(std::string_view text);

// A name that was quoted, without its quotes.
std::string_view unquoted(std::string_view name);

struct TextPosition {
  size_t line = 1, column = 1;
};
TextPosition position_at(std::string_view text, size_t offset);

}  // namespace cprof::store
