#include "serve/json_rows.h"

namespace cprof::serve {
namespace {

using nlohmann::json;

constexpr int64_t kExact = int64_t{1} << 53;
constexpr size_t kMaxBytes = size_t{64} << 20;

struct ToJson {
  json operator()(std::monostate) const { return nullptr; }
  json operator()(int64_t v) const { return v > kExact || v < -kExact ? json(std::to_string(v)) : json(v); }
  json operator()(double v) const { return v; }
  json operator()(std::string_view v) const { return std::string(v); }
  json operator()(const store::SqlBlob& v) const { return "blob of " + std::to_string(v.bytes.size()) + " bytes"; }
};

}  // namespace

Result<void> JsonRows::begin(std::span<const std::string> columns) {
  columns_ = json(std::vector<std::string>(columns.begin(), columns.end()));
  rows_ = json::array();
  bytes_ = 0;
  return {};
}

Result<void> JsonRows::row(std::span<const store::SqlValue> values) {
  json row = json::array();
  for (const store::SqlValue& value : values) {
    if (const auto* text = std::get_if<std::string_view>(&value)) bytes_ += text->size();
    bytes_ += 16;
    row.push_back(std::visit(ToJson(), value));
  }
  if (bytes_ > kMaxBytes) return fail("the result is larger than 64 MB");
  rows_.push_back(std::move(row));
  return {};
}

Result<void> JsonRows::end(bool was_cut) {
  was_cut_ = was_cut;
  return {};
}

json JsonRows::take() {
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start_;
  return {{"columns", std::move(columns_)}, {"rows", std::move(rows_)}, {"cut", was_cut_}, {"ms", took.count()}};
}

}  // namespace cprof::serve
