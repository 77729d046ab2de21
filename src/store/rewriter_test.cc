#include "store/rewriter.h"

#include <gtest/gtest.h>

namespace cprof::store {
namespace {

class RewriterTest : public ::testing::Test {
 protected:
  // The last statement of the script, rewritten; those before it must be right.
  SqlResult<Rewritten> rewrite(std::string_view script) {
    SqlResult<Rewritten> last;
    for (const ScriptStatement& statement : split_statements(script).statements) {
      EXPECT_TRUE(last) << last.error().message;
      last = rewriter_.rewrite(statement);
    }
    return last;
  }
  std::string sql(std::string_view script) {
    auto result = rewrite(script);
    return result ? result->sql : "error: " + result.error().message;
  }
  std::string error(std::string_view script) {
    auto result = rewrite(script);
    return result ? "no error" : result.error().message;
  }

  Rewriter rewriter_;
};

TEST(SqlTokens, CutWhereSqliteDoes) {
  std::vector<std::string> texts;
  const std::string script = "select 'it''s; x',\"a\"\"b\", [c d] -- end; of\n, x'00' /* ; */ <> $p || 1.5e-3";
  for (const Token& token : tokenize(script))
    if (token.kind != TokenKind::kSpace) texts.emplace_back(token.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"select", "'it''s; x'", ",", "\"a\"\"b\"", ",", "[c d]", ",", "x'00'",
                                             "<>", "$p", "||", "1.5e-3"}));
}

TEST(SqlTokens, EveryByteIsInOneToken) {
  for (std::string_view text :
       {"'open", "/* open", "\"open", "[open", "$", "a\xff\xc3z", "1e", "0xZ", "--", "x'", "\0;", "!"}) {
    std::string all;
    for (const Token& token : tokenize(text)) all += token.text;
    EXPECT_EQ(all, text);
  }
}

TEST(SqlTokens, StatementsAndWhereTheyStand) {
  const Script script = split_statements(";; select 1 ;\n -- nothing\n select ';' ; select 3");
  ASSERT_EQ(script.statements.size(), 3u);
  EXPECT_EQ(script.statements[0].text, "select 1");
  EXPECT_EQ(script.statements[1].text, "select ';'");
  EXPECT_EQ(script.statements[1].offset, 27u);
  EXPECT_EQ(script.statements[2].text, "select 3");
  EXPECT_FALSE(script.is_complete);
  EXPECT_TRUE(split_statements("select 1; -- done").is_complete);
  EXPECT_TRUE(split_statements(" \n").is_complete);
  EXPECT_FALSE(split_statements("select 'a;").is_complete);
}

TEST(SqlTokens, Positions) {
  EXPECT_EQ(position_at("ab\ncä d", 7).line, 2u);
  EXPECT_EQ(position_at("ab\ncä d", 7).column, 4u) << "characters, not bytes";
  EXPECT_EQ(position_at("ab", 99).column, 3u);
}

TEST_F(RewriterTest, PlainSqlStaysAsItIs) {
  EXPECT_EQ(sql("SELECT a /* x */ != (b) FROM t"), "SELECT a /* x */ != (b) FROM t");
  EXPECT_EQ(sql("WITH x AS (SELECT 1) SELECT * FROM x"), "WITH x AS (SELECT 1) SELECT * FROM x");
}

TEST_F(RewriterTest, WhatIsCreatedIsTemporary) {
  EXPECT_EQ(sql("CREATE VIEW v AS SELECT 1"), "CREATE TEMP VIEW v AS SELECT 1");
  EXPECT_EQ(sql("create table t(a)"), "CREATE TEMP table t(a)");
  EXPECT_EQ(sql("CREATE PERFETTO TABLE t AS SELECT 1"), "CREATE TEMP TABLE \"t\" AS SELECT 1");
  EXPECT_EQ(sql("create perfetto view v(\n -- the id\n id JOINID(thread.id), b STRING) as select 1, 2"),
            "CREATE TEMP VIEW \"v\" AS select 1, 2");
  EXPECT_EQ(sql("CREATE PERFETTO INDEX i ON t(a)"), "CREATE INDEX temp.\"i\" ON t(a)");
  EXPECT_EQ(sql("DROP PERFETTO INDEX i ON t"), "DROP INDEX temp.\"i\"");
  auto replaced = rewrite("CREATE OR REPLACE PERFETTO VIEW v AS SELECT 2");
  ASSERT_TRUE(replaced);
  EXPECT_EQ(replaced->before, std::vector<std::string>{"DROP VIEW IF EXISTS temp.\"v\""});
}

TEST_F(RewriterTest, Modules) {
  auto include = rewrite("INCLUDE PERFETTO MODULE slices.with_context");
  ASSERT_TRUE(include);
  EXPECT_EQ(include->kind, Rewritten::Kind::kInclude);
  EXPECT_EQ(include->module, "slices.with_context");
  EXPECT_EQ(rewrite("include perfetto module slices.*")->module, "slices.*");
  EXPECT_EQ(error("INCLUDE PERFETTO MODULE"), "the name of a module is missing");
}

TEST_F(RewriterTest, Functions) {
  auto scalar = rewrite("CREATE PERFETTO FUNCTION plus(x INT, y JOINID(a.b)) RETURNS INT AS SELECT $x + $y");
  ASSERT_TRUE(scalar);
  EXPECT_EQ(scalar->kind, Rewritten::Kind::kFunction);
  EXPECT_EQ(scalar->function.name, "plus");
  EXPECT_EQ(scalar->function.arguments, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(scalar->function.columns.empty());
  EXPECT_EQ(scalar->function.body, "SELECT $x + $y");
  auto table = rewrite("CREATE PERFETTO FUNCTION f() RETURNS TABLE(ts LONG, dur LONG) AS SELECT 1, 2");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->function.columns, (std::vector<std::string>{"ts", "dur"}));
  EXPECT_EQ(error("CREATE PERFETTO FUNCTION f(x INT RETURNS INT AS SELECT 1"), "')' is missing");
  EXPECT_EQ(error("CREATE PERFETTO FUNCTION f() RETURNS TABLE() AS SELECT 1"), "a table needs a column");
}

TEST_F(RewriterTest, MacrosAreExpanded) {
  const std::string define =
      "CREATE PERFETTO MACRO m(x TableOrSubquery, y Expr) RETURNS TableOrSubquery AS (SELECT $y FROM $x AS t);";
  EXPECT_EQ(sql(define + "SELECT * FROM m!(( SELECT a, b FROM q ), 1 + 2)"),
            "SELECT * FROM (SELECT 1 + 2 FROM ( SELECT a, b FROM q ) AS t)");
  EXPECT_EQ(sql("SELECT * FROM M ! (t, 1)"), "SELECT * FROM M ! (t, 1)") << "a macro's '!' follows its name";
  EXPECT_EQ(sql("SELECT * FROM m!(m!(t, 1), 2)"), "SELECT * FROM (SELECT 2 FROM (SELECT 1 FROM t AS t) AS t)");
  EXPECT_EQ(sql("CREATE PERFETTO MACRO none() RETURNS Expr AS 2; SELECT none!() + 1"), "SELECT 2 + 1");
  EXPECT_EQ(error("SELECT m!(1)"), "macro m takes 2 arguments, not 1");
  EXPECT_EQ(error("SELECT nothing!(1)"), "no macro 'nothing'; is its module included?");
  EXPECT_EQ(error("SELECT none!(("), "the ')' of none! is missing");
  EXPECT_EQ(error("CREATE PERFETTO MACRO none() RETURNS Expr AS 3"), "there is a macro none already");
  EXPECT_EQ(sql("CREATE OR REPLACE PERFETTO MACRO none() RETURNS Expr AS 3; SELECT none!()"), "SELECT 3");
}

TEST_F(RewriterTest, MacrosThatNeverEndAreRefused) {
  EXPECT_EQ(error("CREATE PERFETTO MACRO a() RETURNS Expr AS a!(); SELECT a!()"),
            "macro a calls macros more than 32 deep");
  std::string nested = "1";
  for (int i = 0; i < 1000; ++i) nested = "t!(" + nested;
  EXPECT_EQ(error("SELECT " + nested).substr(0, 3), "no ");
  const std::string twice = "CREATE PERFETTO MACRO t(x Expr) RETURNS Expr AS $x + $x;";
  std::string call = "1";
  for (int i = 0; i < 25; ++i) call = "t!(" + call + ")";
  EXPECT_NE(error(twice + "SELECT " + call).find("too long"), std::string::npos);
  for (int i = 0; i < 20; ++i) call = "t!(" + call + ")";
  EXPECT_NE(error("SELECT " + call).find("32 deep"), std::string::npos);
}

TEST_F(RewriterTest, PlacesAreThoseOfTheScript) {
  const std::string define = "CREATE PERFETTO MACRO m(x Expr) RETURNS Expr AS (SELECT $x, wrong);\n";
  const std::string script = define + "SELECT m!(right)";
  auto result = rewrite(script);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->origin_of(result->sql.find("right")), script.find("right"));
  EXPECT_EQ(result->origin_of(result->sql.find("wrong")), script.find("m!("))
      << "what a macro brings stands where it is called";
  auto view = rewrite("CREATE PERFETTO VIEW v AS SELECT x");
  EXPECT_EQ(view->origin_of(view->sql.find('x')), 33u);
}

}  // namespace
}  // namespace cprof::store
