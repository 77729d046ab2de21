// Nodes of the JSON tree that take whole columns. Used by firefox_parser.cc.
#pragma once

#include <fmt/format.h>

#include <functional>

#include "format/firefox/firefox_file.h"
#include "format/json/json_nodes.h"
#include "format/json/json_number.h"

namespace cprof::format {

// [0,null,3]: indexes of rows; true and false are 1 and 0.
class IndexColumnNode : public JsonNode {
 public:
  explicit IndexColumnNode(IndexColumn& into) : into_(into) {}
  JsonNode* element() override { return this; }
  Result<void> begin_array() override { return {}; }
  Result<void> number(std::string_view literal) override {
    const auto value = scaled_number(literal, 0);
    if (!value || *value < -1 || *value > INT32_MAX) return fail(fmt::format("{} is not the number of a row", literal));
    into_.push_back(static_cast<int32_t>(*value));
    return {};
  }
  Result<void> boolean(bool value) override { return into_.push_back(value), Result<void>(); }
  Result<void> null() override { return into_.push_back(kNoIndex), Result<void>(); }

 protected:
  std::string_view expected() const override { return "a column of numbers"; }

 private:
  IndexColumn& into_;
};

// [0.5,null]: numbers times 10^decimals.
class NumberColumnNode : public JsonNode {
 public:
  NumberColumnNode(NumberColumn& into, unsigned decimals) : into_(into), decimals_(decimals) {}
  JsonNode* element() override { return this; }
  Result<void> begin_array() override { return {}; }
  Result<void> number(std::string_view literal) override {
    const auto value = scaled_number(literal, decimals_);
    if (!value || *value == kNoNumber) return fail(fmt::format("{} is not a number that 64 bits hold", literal));
    into_.push_back(*value);
    return {};
  }
  Result<void> null() override { return into_.push_back(kNoNumber), Result<void>(); }

 protected:
  std::string_view expected() const override { return "a column of numbers"; }

 private:
  NumberColumn& into_;
  unsigned decimals_;
};

// ["a",null]: texts, each handed to a function; null is "".
class TextColumnNode : public JsonNode {
 public:
  explicit TextColumnNode(std::function<void(std::string_view)> take) : take_(std::move(take)) {}
  JsonNode* element() override { return this; }
  Result<void> begin_array() override { return {}; }
  Result<void> text(std::string_view value) override { return take_(value), Result<void>(); }
  Result<void> null() override { return take_({}), Result<void>(); }

 protected:
  std::string_view expected() const override { return "a column of texts"; }

 private:
  std::function<void(std::string_view)> take_;
};

// "12", 12: what was a number in one version and a text in another.
class TextOrNumberNode : public JsonNode {
 public:
  explicit TextOrNumberNode(std::string& into) : into_(into) {}
  Result<void> text(std::string_view value) override { return into_ = value, Result<void>(); }
  Result<void> number(std::string_view literal) override { return into_ = literal, Result<void>(); }

 private:
  std::string& into_;
};

class NumberNode : public JsonNode {
 public:
  NumberNode(int64_t& into, unsigned decimals) : into_(into), decimals_(decimals) {}
  Result<void> number(std::string_view literal) override {
    const auto value = scaled_number(literal, decimals_);
    if (!value || *value == kNoNumber) return fail(fmt::format("{} is not a number that 64 bits hold", literal));
    into_ = *value;
    return {};
  }

 private:
  int64_t& into_;
  unsigned decimals_;
};

class BooleanNode : public JsonNode {
 public:
  explicit BooleanNode(bool& into) : into_(into) {}
  Result<void> boolean(bool value) override { return into_ = value, Result<void>(); }

 private:
  bool& into_;
};

}  // namespace cprof::format
