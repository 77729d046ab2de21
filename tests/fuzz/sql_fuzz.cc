// Any bytes as a script of SQL: every byte is in one token, what is rewritten knows its places, and running it changes
// no profile.
#include <cstdlib>

#include "profile/builder.h"
#include "store/query_session.h"

namespace {

using namespace cprof;

class Nowhere final : public store::RowSink {
 public:
  Result<void> begin(std::span<const std::string>) override { return {}; }
  Result<void> row(std::span<const store::SqlValue>) override { return {}; }
  Result<void> end(bool) override { return {}; }
};

void check_tokens(std::string_view script) {
  size_t at = 0;
  for (const store::Token& token : store::tokenize(script)) {
    if (token.origin != at || token.text.empty()) abort();
    at += token.text.size();
  }
  if (at != script.size()) abort();
}

void check_places(std::string_view script) {
  store::Rewriter rewriter;
  for (const store::ScriptStatement& statement : store::split_statements(script).statements) {
    auto rewritten = rewriter.rewrite(statement);
    if (!rewritten) {
      if (rewritten.error().offset > script.size()) abort();
      continue;
    }
    for (const auto& [in_sql, in_script] : rewritten->origins)
      if (in_sql > rewritten->sql.size() || in_script >= script.size()) abort();
  }
}

profile::Profile one_sample() {
  profile::ProfileBuilder builder;
  profile::Line line{builder.function({.name = builder.intern("main")})};
  const profile::LocationId path[] = {builder.named_location({}, profile::FrameKind::kUser, {&line, 1})};
  builder.add_aggregate({.site = builder.stack(path), .metric = builder.add_metric("cpu", "nanoseconds"), .value = 1});
  return builder.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  check_tokens(script);
  check_places(script);
  auto session = store::QuerySession::create([](std::string_view name) { return std::string(name); });
  if (!session) abort();
  (*session)->add_profile(one_sample(), "fuzz");
  Nowhere sink;
  (void)(*session)->run(script, {.rows = 100, .seconds = 0.2}, sink);
  // main. is the profile's own schema: nothing that the script made can stand before it.
  class Count final : public store::RowSink {
   public:
    Result<void> begin(std::span<const std::string>) override { return {}; }
    Result<void> row(std::span<const store::SqlValue> values) override {
      if (values.size() != 1 || !std::holds_alternative<int64_t>(values[0]) || std::get<int64_t>(values[0]) != 1)
        abort();
      return {};
    }
    Result<void> end(bool) override { return {}; }
  } count;
  if (!(*session)->run("SELECT count(*) FROM main.__intrinsic_aggregate_sample", {}, count)) abort();
  return 0;
}
