// Any bytes as a Chrome trace: what can be read must be valid and writable; and as JSON, by buffers of every size: the
// tokens are the same.
#include <cstdlib>
#include <span>
#include <string>

#include "format/chrome/chrome.h"
#include "format/input.h"
#include "format/json/tokenizer.h"
#include "profile/validate.h"

namespace {

using namespace cprof;

std::string tokens(std::span<const std::byte> bytes, size_t buffer) {
  auto input = format::memory_input(bytes, "fuzz");
  if (!input) return {};
  auto stream = format::InputStream::open(std::move(*input), {});
  if (!stream) return {};
  format::JsonTokenizer json(std::move(*stream), buffer);
  using Token = format::JsonTokenizer::Token;
  std::string all;
  for (Token token = json.next();; token = json.next()) {
    all += static_cast<char>('a' + static_cast<int>(token));
    if (token == Token::kEnd || token == Token::kBad) return all;
    if (token == Token::kKey || token == Token::kText || token == Token::kNumber) all += json.text();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (tokens(bytes, 16) != tokens(bytes, 1 << 16)) abort();
  format::sniff_chrome(bytes);
  auto input = format::memory_input(bytes, "fuzz");
  if (!input) return 0;
  format::ReadOptions options;
  options.max_input_bytes = size_t{64} << 20;
  auto profile = format::read_chrome(std::move(*input), options);
  if (!profile) return 0;
  if (!profile::validate(*profile)) abort();
  auto out = OutputFile::create("/dev/null");
  if (!out || !format::write_chrome(*profile, *out, {})) abort();
  return 0;
}
