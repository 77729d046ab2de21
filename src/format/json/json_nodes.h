// What a reader wants of a JSON document, as a tree of nodes: each takes one kind of value, and everything that no node
// asks for is skipped. Used by the readers whose formats are objects of columns; helps a handler of json_stream.h to know
// where it is. One thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "format/json/json_stream.h"

namespace cprof::format {

// Takes nothing: a value of a kind that is not expected is an error that says so. null is taken for absent.
class JsonNode {
 public:
  JsonNode() = default;
  JsonNode(const JsonNode&) = delete;
  JsonNode& operator=(const JsonNode&) = delete;
  virtual ~JsonNode() = default;
  // Who takes the value of this key, the next element; null: nobody.
  virtual JsonNode* member(std::string_view) { return nullptr; }
  virtual JsonNode* element() { return nullptr; }
  virtual Result<void> begin_object() { return unexpected("an object"); }
  virtual Result<void> end_object() { return {}; }
  virtual Result<void> begin_array() { return unexpected("an array"); }
  virtual Result<void> end_array() { return {}; }
  virtual Result<void> text(std::string_view) { return unexpected("a text"); }
  virtual Result<void> number(std::string_view) { return unexpected("a number"); }
  virtual Result<void> boolean(bool) { return unexpected("true or false"); }
  virtual Result<void> null() { return {}; }

 protected:
  virtual std::string_view expected() const { return "another value"; }
  Result<void> unexpected(std::string_view what) const {
    return fail(std::string(what) + " where " + std::string(expected()) + " should be");
  }
};

// An object whose keys are known. on_begin and on_end are called around its members.
class JsonObject : public JsonNode {
 public:
  using Members = std::vector<std::pair<std::string_view, JsonNode*>>;
  using Action = std::function<Result<void>()>;
  explicit JsonObject(Members members, Action on_begin = {}, Action on_end = {})
      : members_(std::move(members)), on_begin_(std::move(on_begin)), on_end_(std::move(on_end)) {}

  JsonNode* member(std::string_view key) override {
    for (auto& [name, node] : members_)
      if (name == key) return node;
    return nullptr;
  }
  Result<void> begin_object() override { return on_begin_ ? on_begin_() : Result<void>(); }
  Result<void> end_object() override { return on_end_ ? on_end_() : Result<void>(); }

 protected:
  std::string_view expected() const override { return "an object"; }

 private:
  Members members_;
  Action on_begin_, on_end_;
};

// An array whose elements all go to one node.
class JsonList : public JsonNode {
 public:
  using Action = std::function<Result<void>()>;
  explicit JsonList(JsonNode* element, Action on_begin = {}, Action on_end = {})
      : element_(element), on_begin_(std::move(on_begin)), on_end_(std::move(on_end)) {}

  JsonNode* element() override { return element_; }
  Result<void> begin_array() override { return on_begin_ ? on_begin_() : Result<void>(); }
  Result<void> end_array() override { return on_end_ ? on_end_() : Result<void>(); }

 protected:
  std::string_view expected() const override { return "an array"; }

 private:
  JsonNode* element_;
  Action on_begin_, on_end_;
};

// One value, handed to a function.
class JsonText : public JsonNode {
 public:
  using Take = std::function<Result<void>(std::string_view)>;
  explicit JsonText(Take take) : take_(std::move(take)) {}
  explicit JsonText(std::string& into) : take_([&into](std::string_view text) { return into = text, Result<void>(); }) {}
  Result<void> text(std::string_view value) override { return take_(value); }

 protected:
  std::string_view expected() const override { return "a text"; }

 private:
  Take take_;
};

class JsonNumber : public JsonNode {
 public:
  using Take = std::function<Result<void>(std::string_view)>;
  explicit JsonNumber(Take take, Take on_null = {}) : take_(std::move(take)), on_null_(std::move(on_null)) {}
  Result<void> number(std::string_view literal) override { return take_(literal); }
  Result<void> null() override { return on_null_ ? on_null_({}) : Result<void>(); }

 protected:
  std::string_view expected() const override { return "a number"; }

 private:
  Take take_, on_null_;
};

// The handler that leads a document's events to the nodes.
class JsonWalker : public JsonHandler {
 public:
  explicit JsonWalker(JsonNode& root) : next_(&root) {}

  bool begin_object() override;
  bool key(std::string_view name) override;
  bool end_object() override;
  bool begin_array() override;
  bool end_array() override;
  bool text(std::string_view value) override;
  bool number(std::string_view literal) override;
  bool boolean(bool value) override;
  bool null() override;

 private:
  struct Level {
    JsonNode* node;  // null: skipped
    bool is_array;
  };
  bool open(bool is_array);
  bool close();
  JsonNode* target();  // who takes the value that comes now
  bool done(Result<void> result);

  std::vector<Level> levels_;
  JsonNode* next_;
};

}  // namespace cprof::format
