// Rows of a query as JSON for the page: the last statement's, at most as many as the query's limit. Whole numbers that a
// double cannot hold travel as texts.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>

#include "store/query_session.h"

namespace cprof::serve {

class JsonRows final : public store::RowSink {
 public:
  Result<void> begin(std::span<const std::string> columns) override;
  Result<void> row(std::span<const store::SqlValue> values) override;
  Result<void> end(bool was_cut) override;

  nlohmann::json take();

 private:
  nlohmann::json columns_ = nlohmann::json::array(), rows_ = nlohmann::json::array();
  bool was_cut_ = false;
  size_t bytes_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace cprof::serve
