// Stacks as a tree of texts: equal lines fall together, and come out sorted by their bytes without being held as lines.
// Used by the folded writer; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/string_table.h"
#include "profile/row_index.h"

namespace cprof::format {

class FoldedTree {
 public:
  using Node = uint32_t;
  static constexpr Node kRoot = 0;

  FoldedTree();

  // The child of that text, made if it is new. Texts hold no ';'.
  Node child(Node parent, std::string_view text) { return child(parent, text_id(text)); }
  // The same in two steps, for who meets the same texts again and again.
  StringId text_id(std::string_view text) { return texts_.intern(text); }
  Node child(Node parent, StringId text);
  void add(Node node, int64_t value);

  // Each node of a value that is not 0 after rounding by divisor: the path, texts joined by ';', and the value. Lines
  // "path value" come in the order of their bytes.
  using LineSink = std::function<Result<void>(std::string_view path, Node node, int64_t value)>;
  Result<void> for_each_line(int64_t divisor, const LineSink& on_line) const;

 private:
  struct Row {
    Node parent = kRoot;
    StringId text{};
    int64_t value = 0;
  };
  struct Children {
    std::vector<uint32_t> offsets;
    std::vector<Node> nodes;
    std::span<const Node> of(Node node) const {
      return std::span(nodes).subspan(offsets[node], offsets[node + 1] - offsets[node]);
    }
  };
  struct Item;

  Children children() const;
  void append_items(std::span<const Node> children, int64_t divisor, std::vector<Item>& items) const;

  StringTable texts_;
  profile::ChildIndex index_;
  std::vector<Row> rows_;
};

}  // namespace cprof::format
