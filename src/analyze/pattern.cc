#include "analyze/pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

namespace cprof::analyze {
namespace {

constexpr size_t kMaxLength = 64 * 1024;
constexpr int64_t kMaxMemory = 16 << 20;

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

Result<Pattern> Pattern::compile(std::string_view text) {
  if (text.size() > kMaxLength) return fail("a regular expression of more than 64 KiB");
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxMemory);
  auto re = std::make_shared<const re2::RE2>(piece(text), options);
  if (!re->ok()) return fail(fmt::format("not a regular expression: {}", re->error()));
  return Pattern(std::move(re));
}

bool Pattern::found_in(std::string_view text) const { return re2::RE2::PartialMatch(piece(text), *re_); }
bool Pattern::matches_all_of(std::string_view text) const { return re2::RE2::FullMatch(piece(text), *re_); }
std::string_view Pattern::text() const { return re_->pattern(); }

}  // namespace cprof::analyze
