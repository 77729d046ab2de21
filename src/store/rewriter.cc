// A statement becomes tokens; its first words tell what it is. What follows is taken apart by a small parser that knows
// names, lists in brackets and "everything after AS". Every token remembers where in the script it, or the macro call
// that brought it, stands, so that an error of SQLite points at what was typed.
#include "store/rewriter.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace cprof::store {
namespace {

constexpr size_t kMaxMacroLevel = 32, kMaxTokens = 1 << 18;

std::unexpected<SqlError> refuse(size_t offset, std::string message) {
  return std::unexpected(SqlError{std::move(message), offset});
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string text_of(std::span<const Token> tokens) {
  std::string text;
  for (const Token& token : tokens) text += token.text;
  return text;
}

std::string quoted_name(std::string_view name) {
  std::string result = "\"";
  for (char c : name) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + "\"";
}

}  // namespace

size_t Rewritten::origin_of(size_t sql_offset) const {
  auto next = std::ranges::upper_bound(origins, sql_offset, {}, &std::pair<size_t, size_t>::first);
  return next == origins.begin() ? 0 : std::prev(next)->second;
}

// One statement, already expanded.
class StatementParser {
 public:
  StatementParser(Rewriter& rewriter, std::vector<Token> tokens, size_t end)
      : rewriter_(rewriter), tokens_(std::move(tokens)), end_(end) {}

  SqlResult<Rewritten> parse() {
    skip_space();
    const size_t first = at_;
    if (takes("INCLUDE")) return include();
    if (takes("DROP") && takes("PERFETTO")) return drop();
    at_ = first;
    if (!takes("CREATE")) return as_it_is();
    const bool is_replacing = takes("OR") && takes("REPLACE");
    if (takes("PERFETTO")) return create_perfetto(is_replacing);
    if (peek().is_word("TABLE") || peek().is_word("VIEW")) return create_temporary();
    return as_it_is();
  }

 private:
  const Token& peek() const {
    static const Token kEnd;
    return at_ < tokens_.size() ? tokens_[at_] : kEnd;
  }
  size_t here() const { return at_ < tokens_.size() ? tokens_[at_].origin : end_; }
  void skip_space() {
    while (at_ < tokens_.size() && tokens_[at_].kind == TokenKind::kSpace) ++at_;
  }
  void step() {
    ++at_;
    skip_space();
  }
  bool takes(std::string_view keyword) {
    if (!peek().is_word(keyword)) return false;
    step();
    return true;
  }
  bool takes_mark(std::string_view mark) {
    if (!peek().is(mark)) return false;
    step();
    return true;
  }
  SqlResult<std::string> name() {
    if (peek().kind != TokenKind::kWord && peek().kind != TokenKind::kName) return refuse(here(), "a name is missing");
    std::string text(unquoted(peek().text));
    step();
    return text;
  }
  SqlResult<void> expect(std::string_view keyword) {
    if (!takes(keyword)) return refuse(here(), fmt::format("{} is missing", keyword));
    return {};
  }

  // "(a INT, b JOINID(thread.id), c)" as its names; comments are skipped, types are not kept.
  SqlResult<std::vector<std::string>> names_in_brackets() {
    if (!takes_mark("(")) return refuse(here(), "'(' is missing");
    std::vector<std::string> names;
    while (!takes_mark(")")) {
      names.push_back(TRY(name()));
      for (int depth = 0; depth > 0 || (!peek().is(",") && !peek().is(")")); step()) {
        if (at_ >= tokens_.size()) return refuse(here(), "')' is missing");
        depth += peek().is("(") ? 1 : peek().is(")") ? -1 : 0;
      }
      takes_mark(",");
    }
    return names;
  }

  // What follows, with the places it comes from.
  void append_rest(Rewritten& result) {
    for (; at_ < tokens_.size(); ++at_) {
      result.origins.emplace_back(result.sql.size(), tokens_[at_].origin);
      result.sql += tokens_[at_].text;
    }
  }

  SqlResult<Rewritten> as_it_is() {
    at_ = 0;
    Rewritten result{.kind = Rewritten::Kind::kSql};
    append_rest(result);
    return result;
  }

  SqlResult<Rewritten> create_temporary() {
    Rewritten result{.kind = Rewritten::Kind::kSql, .sql = "CREATE TEMP "};
    append_rest(result);
    return result;
  }

  SqlResult<Rewritten> include() {
    TRY(expect("PERFETTO"));
    TRY(expect("MODULE"));
    Rewritten result{.kind = Rewritten::Kind::kInclude};
    for (; at_ < tokens_.size(); ++at_)
      result.module += tokens_[at_].kind == TokenKind::kSpace ? "" : tokens_[at_].text;
    if (result.module.empty()) return refuse(here(), "the name of a module is missing");
    return result;
  }

  SqlResult<Rewritten> drop() {
    TRY(expect("INDEX"));
    Rewritten result{.kind = Rewritten::Kind::kSql};
    result.sql = fmt::format("DROP INDEX temp.{}", quoted_name(TRY(name())));
    return result;
  }

  SqlResult<Rewritten> create_perfetto(bool is_replacing) {
    if (takes("TABLE")) return table_or_view("TABLE", is_replacing);
    if (takes("VIEW")) return table_or_view("VIEW", is_replacing);
    if (takes("INDEX")) return index(is_replacing);
    if (takes("FUNCTION")) return function();
    if (takes("MACRO")) return macro(is_replacing);
    return refuse(here(), "not supported: CREATE PERFETTO of anything but TABLE, VIEW, INDEX, FUNCTION, MACRO");
  }

  SqlResult<Rewritten> table_or_view(std::string_view kind, bool is_replacing) {
    Rewritten result{.kind = Rewritten::Kind::kSql};
    const std::string object = quoted_name(TRY(name()));
    if (peek().is("(")) TRY(names_in_brackets());
    TRY(expect("AS"));
    if (is_replacing) result.before.push_back(fmt::format("DROP {} IF EXISTS temp.{}", kind, object));
    result.sql = fmt::format("CREATE TEMP {} {} AS ", kind, object);
    append_rest(result);
    return result;
  }

  SqlResult<Rewritten> index(bool is_replacing) {
    Rewritten result{.kind = Rewritten::Kind::kSql};
    const std::string object = quoted_name(TRY(name()));
    if (is_replacing) result.before.push_back(fmt::format("DROP INDEX IF EXISTS temp.{}", object));
    TRY(expect("ON"));
    result.sql = fmt::format("CREATE INDEX temp.{} ON ", object);
    append_rest(result);
    return result;
  }

  SqlResult<Rewritten> function() {
    Rewritten result{.kind = Rewritten::Kind::kFunction};
    FunctionDefinition& f = result.function;
    f.name = TRY(name());
    f.arguments = TRY(names_in_brackets());
    TRY(expect("RETURNS"));
    if (takes("TABLE")) {
      const size_t columns_at = here();
      f.columns = TRY(names_in_brackets());
      if (f.columns.empty()) return refuse(columns_at, "a table needs a column");
    } else {
      TRY(name());
      if (peek().is("(")) TRY(names_in_brackets());
    }
    // "DELEGATES TO" and other implementations are the trace processor's own.
    TRY(expect("AS"));
    append_rest(result);
    f.body = result.sql;
    if (f.body.empty()) return refuse(end_, "the function's SELECT is missing");
    return result;
  }

  SqlResult<Rewritten> macro(bool is_replacing) {
    const size_t name_at = here();
    const std::string key = lower(TRY(name()));
    Rewriter::Macro macro;
    macro.parameters = TRY(names_in_brackets());
    TRY(expect("RETURNS"));
    TRY(name());
    TRY(expect("AS"));
    macro.body = text_of(std::span(tokens_).subspan(std::min(at_, tokens_.size())));
    if (macro.body.empty()) return refuse(end_, "the macro's text is missing");
    if (!is_replacing && rewriter_.macros_.contains(key))
      return refuse(name_at, fmt::format("there is a macro {} already", key));
    rewriter_.macros_[key] = std::move(macro);
    return Rewritten{};
  }

  Rewriter& rewriter_;
  std::vector<Token> tokens_;
  size_t at_ = 0, end_;
};

namespace {

// At `word ! (`: a macro call. '!' alone is no operator of SQL.
bool is_call(const std::vector<Token>& tokens, size_t at) {
  if (tokens[at].kind != TokenKind::kWord || at + 1 >= tokens.size() || !tokens[at + 1].is("!")) return false;
  size_t open = at + 2;
  while (open < tokens.size() && tokens[open].kind == TokenKind::kSpace) ++open;
  return open < tokens.size() && tokens[open].is("(");
}

bool is_macro_definition(const std::vector<Token>& tokens) {
  size_t words = 0;
  for (const Token& token : tokens) {
    if (token.kind == TokenKind::kSpace) continue;
    if (token.is_word("MACRO")) return words >= 2;
    if (++words > 4 || token.kind != TokenKind::kWord) return false;
  }
  return false;
}

void trim(std::vector<Token>& tokens) {
  auto is_text = [](const Token& token) { return token.kind != TokenKind::kSpace; };
  tokens.erase(tokens.begin(), std::ranges::find_if(tokens, is_text));
  while (!tokens.empty() && !is_text(tokens.back())) tokens.pop_back();
}

// The arguments of a call whose '(' stands at `at`; `at` moves behind the ')'. Empty when that is missing.
std::optional<std::vector<std::vector<Token>>> call_arguments(const std::vector<Token>& tokens, size_t& at) {
  std::vector<std::vector<Token>> arguments(1);
  int depth = 0;
  for (; at < tokens.size(); ++at) {
    const Token& token = tokens[at];
    if (token.is("(") && depth++ == 0) continue;
    if (token.is(")") && --depth == 0) break;
    if (token.is(",") && depth == 1)
      arguments.emplace_back();
    else
      arguments.back().push_back(token);
  }
  if (at >= tokens.size()) return std::nullopt;
  ++at;
  for (auto& argument : arguments) trim(argument);
  if (arguments.size() == 1 && arguments[0].empty()) arguments.clear();
  return arguments;
}

}  // namespace

SqlResult<std::vector<Token>> Rewriter::expand_call(const std::vector<Token>& tokens, size_t& at, size_t level) const {
  const Token& name = tokens[at];
  auto found = macros_.find(lower(name.text));
  if (found == macros_.end())
    return refuse(name.origin, fmt::format("no macro '{}'; is its module included?", name.text));
  if (level >= kMaxMacroLevel)
    return refuse(name.origin, fmt::format("macro {} calls macros more than {} deep", name.text, level));
  at += 2;
  while (tokens[at].kind == TokenKind::kSpace) ++at;
  auto arguments = call_arguments(tokens, at);
  if (!arguments) return refuse(name.origin, fmt::format("the ')' of {}! is missing", name.text));
  const Macro& macro = found->second;
  if (arguments->size() != macro.parameters.size())
    return refuse(name.origin, fmt::format("macro {} takes {} arguments, not {}", name.text, macro.parameters.size(),
                                           arguments->size()));
  // Before they are put in: what stands twice in the body is expanded once.
  for (auto& argument : *arguments) argument = TRY(expand(argument, level + 1));
  std::vector<Token> body;
  for (Token token : tokenize(macro.body)) {
    token.origin = name.origin;
    auto parameter = token.kind != TokenKind::kParameter || token.text[0] != '$'
                         ? macro.parameters.end()
                         : std::ranges::find(macro.parameters, token.text.substr(1));
    if (parameter == macro.parameters.end()) {
      body.push_back(token);
      continue;
    }
    const auto& argument = (*arguments)[static_cast<size_t>(parameter - macro.parameters.begin())];
    body.insert(body.end(), argument.begin(), argument.end());
    if (body.size() > kMaxTokens)
      return refuse(name.origin, fmt::format("macro {} makes a statement that is too long", name.text));
  }
  return expand(body, level + 1);
}

SqlResult<std::vector<Token>> Rewriter::expand(const std::vector<Token>& tokens, size_t level) const {
  std::vector<Token> result;
  for (size_t at = 0; at < tokens.size();) {
    if (!is_call(tokens, at)) {
      result.push_back(tokens[at++]);
      continue;
    }
    auto expanded = TRY(expand_call(tokens, at, level));
    result.insert(result.end(), expanded.begin(), expanded.end());
    if (result.size() > kMaxTokens)
      return refuse(result.front().origin, "the statement is too long once its macros are expanded");
  }
  return result;
}

SqlResult<Rewritten> Rewriter::rewrite(const ScriptStatement& statement) {
  std::vector<Token> tokens = tokenize(statement.text, statement.offset);
  // The text of a macro is expanded where it is called.
  if (!is_macro_definition(tokens)) tokens = TRY(expand(tokens, 0));
  return StatementParser(*this, std::move(tokens), statement.offset + statement.text.size()).parse();
}

std::vector<std::string> Rewriter::macro_names() const {
  std::vector<std::string> names;
  for (const auto& [name, macro] : macros_) names.push_back(name);
  return names;
}

}  // namespace cprof::store
