#include "serve/gate.h"

#include <gtest/gtest.h>

namespace cprof::serve {
namespace {

const Gate kGate("0123456789abcdef0123456789abcdef", 8080);

int status(Request request) {
  auto target = parse_target(request.target);
  if (!target) return 400;
  std::string rest;
  auto refused = kGate.refusal(request, *target, rest);
  return refused ? refused->status : 200;
}

Request get(std::string target, std::string host = "127.0.0.1:8080") { return {.method = "GET", .target = std::move(target), .host = std::move(host)}; }

TEST(Gate, TheTokenOpensIt) {
  Request request = get("/0123456789abcdef0123456789abcdef/api/files?x=1");
  std::string rest;
  EXPECT_FALSE(kGate.refusal(request, *parse_target(request.target), rest));
  EXPECT_EQ(rest, "/api/files");
}

TEST(Gate, WithoutItThereIsNothing) {
  for (const char* target : {"/", "/api/files", "/0123456789abcdef0123456789abcdee/", "/0123456789abcdef0123456789abcdef0/", "//", "/0123456789abcdef"})
    EXPECT_EQ(status(get(target)), 404) << target;
}

TEST(Gate, OtherHostsAreNamesThatSomebodyPointedHere) {
  for (const char* host : {"127.0.0.1:8080", "localhost:8080", "[::1]:8080"})
    EXPECT_EQ(status(get("/0123456789abcdef0123456789abcdef/", host)), 200) << host;
  for (const char* host : {"", "127.0.0.1", "127.0.0.1:8081", "evil.example:8080", "localhost.evil.example:8080", "127.0.0.1:8080.evil.example", "0.0.0.0:8080"})
    EXPECT_EQ(status(get("/0123456789abcdef0123456789abcdef/", host)), 403) << host;
}

TEST(Gate, OtherOriginsAreOtherPages) {
  Request request = get("/0123456789abcdef0123456789abcdef/api/sql");
  request.method = "POST";
  EXPECT_EQ(status(request), 403) << "a POST always has an Origin";
  for (const char* origin : {"null", "http://evil.example", "https://127.0.0.1:8080", "http://127.0.0.1:9", "http://127.0.0.1:8080.evil.example"}) {
    request.origin = origin;
    EXPECT_EQ(status(request), 403) << origin;
  }
  request.origin = "http://127.0.0.1:8080";
  EXPECT_EQ(status(request), 200);
  request.fetch_site = "cross-site";
  EXPECT_EQ(status(request), 403);
}

TEST(Gate, OtherMethods) {
  Request request = get("/0123456789abcdef0123456789abcdef/");
  for (const char* method : {"PUT", "DELETE", "OPTIONS", "HEAD", ""}) {
    request.method = method;
    EXPECT_EQ(status(request), 405) << method;
  }
}

TEST(Gate, TokensDiffer) {
  const std::string a = Gate::new_token(), b = Gate::new_token();
  EXPECT_EQ(a.size(), 32u);
  EXPECT_NE(a, b);
}

TEST(Target, PathAndParameters) {
  auto target = parse_target("/t/api/open?name=a%20b%26c.pb&f=7&empty=&flag");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/t/api/open");
  EXPECT_EQ(target->parameter("name"), "a b&c.pb");
  EXPECT_EQ(target->number("f"), 7u);
  EXPECT_EQ(target->number("empty"), std::nullopt);
  EXPECT_EQ(target->number("missing"), std::nullopt);
}

TEST(Target, WhatIsNotWellFormed) {
  for (const char* text : {"", "x", "http://127.0.0.1/", "/a?b=%", "/a?b=%4", "/a?b=%zz"}) EXPECT_FALSE(parse_target(text)) << text;
  EXPECT_EQ(parse_target("/a?f=-1")->number("f"), std::nullopt);
  EXPECT_EQ(parse_target("/a?f=1x")->number("f"), std::nullopt);
  EXPECT_EQ(parse_target("/a?f=99999999999999999999999")->number("f"), std::nullopt);
}

}  // namespace
}  // namespace cprof::serve
