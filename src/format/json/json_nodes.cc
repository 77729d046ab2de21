#include "format/json/json_nodes.h"

namespace cprof::format {

JsonNode* JsonWalker::target() {
  if (levels_.empty() || !levels_.back().is_array) return next_;
  JsonNode* list = levels_.back().node;
  return list ? list->element() : nullptr;
}

bool JsonWalker::done(Result<void> result) { return result ? true : refuse(std::move(result.error().message)); }

bool JsonWalker::open(bool is_array) {
  JsonNode* node = target();
  levels_.push_back({node, is_array});
  if (!node) return true;
  return done(is_array ? node->begin_array() : node->begin_object());
}

bool JsonWalker::close() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.node) return true;
  return done(level.is_array ? level.node->end_array() : level.node->end_object());
}

bool JsonWalker::begin_object() { return open(false); }
bool JsonWalker::begin_array() { return open(true); }
bool JsonWalker::end_object() { return close(); }
bool JsonWalker::end_array() { return close(); }

bool JsonWalker::key(std::string_view name) {
  JsonNode* object = levels_.back().node;
  next_ = object ? object->member(name) : nullptr;
  return true;
}

bool JsonWalker::text(std::string_view value) {
  JsonNode* node = target();
  return !node || done(node->text(value));
}

bool JsonWalker::number(std::string_view literal) {
  JsonNode* node = target();
  return !node || done(node->number(literal));
}

bool JsonWalker::boolean(bool value) {
  JsonNode* node = target();
  return !node || done(node->boolean(value));
}

bool JsonWalker::null() {
  JsonNode* node = target();
  return !node || done(node->null());
}

}  // namespace cprof::format
