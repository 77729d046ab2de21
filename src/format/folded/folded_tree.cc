#include "format/folded/folded_tree.h"

#include <algorithm>

#include "format/values.h"

namespace cprof::format {
namespace {

int64_t divided(int64_t value, int64_t divisor) {
  if (divisor == 1) return value;
  int64_t half = divisor / 2;
  return value / divisor + (value % divisor >= half ? 1 : value % divisor <= -half ? -1 : 0);
}

}  // namespace

// What stands next in a sorted output below one node: the line of a child itself, "text value", or all lines below it,
// which begin with "text;".
struct FoldedTree::Item {
  Node node = kRoot;
  bool is_line = false;
  int64_t value = 0;
  std::string_view text;

  char behind_text() const { return is_line ? ' ' : ';'; }
  std::string key() const { return std::string(text) + behind_text() + (is_line ? std::to_string(value) : std::string()); }
  bool comes_before(const Item& other) const;
};

// As the bytes of the lines compare. Keys are only made where a text goes on just like the key of a shorter one.
bool FoldedTree::Item::comes_before(const Item& other) const {
  const size_t common = std::min(text.size(), other.text.size());
  if (const int order = text.substr(0, common).compare(other.text.substr(0, common))) return order < 0;
  const auto next = [&](const Item& item) {
    return static_cast<unsigned char>(item.text.size() > common ? item.text[common] : item.behind_text());
  };
  return next(*this) != next(other) ? next(*this) < next(other) : key() < other.key();
}

FoldedTree::FoldedTree() { rows_.emplace_back(); }

FoldedTree::Node FoldedTree::child(Node parent, StringId id) {
  auto is_child = [&](uint32_t row) { return rows_[row].parent == parent && rows_[row].text == id; };
  return index_.find_or_add(parent, id.value, rows_.size(), is_child, [&] {
    rows_.push_back({parent, id, 0});
    return static_cast<uint32_t>(rows_.size() - 1);
  });
}

void FoldedTree::add(Node node, int64_t value) { rows_[node].value = add_clamped(rows_[node].value, value); }

// Last item first, so that the caller pops them in order.
void FoldedTree::append_items(std::span<const Node> children, int64_t divisor, std::vector<Item>& items) const {
  const size_t first = items.size();
  for (Node node : children) {
    const std::string_view text = texts_[rows_[node].text];
    if (int64_t value = divided(rows_[node].value, divisor)) items.push_back({node, true, value, text});
    items.push_back({node, false, 0, text});
  }
  std::sort(items.begin() + static_cast<ptrdiff_t>(first), items.end(),
            [](const Item& a, const Item& b) { return b.comes_before(a); });
}

// All nodes grouped by parent; the children of node n are [offsets[n], offsets[n + 1]).
FoldedTree::Children FoldedTree::children() const {
  Children result{std::vector<uint32_t>(rows_.size() + 1), std::vector<Node>(rows_.size() - 1)};
  for (Node node = 1; node < rows_.size(); ++node) ++result.offsets[rows_[node].parent + 1];
  for (size_t i = 1; i < result.offsets.size(); ++i) result.offsets[i] += result.offsets[i - 1];
  std::vector<uint32_t> next = result.offsets;
  for (Node node = 1; node < rows_.size(); ++node) result.nodes[next[rows_[node].parent]++] = node;
  return result;
}

Result<void> FoldedTree::for_each_line(int64_t divisor, const LineSink& on_line) const {
  struct Open {
    size_t path_length;  // before this node
    size_t items_below;  // as many are left when it is done
  };
  const Children tree = children();
  std::vector<Item> items;
  std::vector<Open> open;
  std::string path;
  append_items(tree.of(kRoot), divisor, items);
  for (;;) {
    while (!open.empty() && items.size() == open.back().items_below) {
      path.resize(open.back().path_length);
      open.pop_back();
    }
    if (items.empty()) return {};
    const Item item = items.back();
    items.pop_back();
    const size_t length = path.size();
    path += item.text;
    if (item.is_line) {
      TRY(on_line(path, item.node, item.value));
      path.resize(length);
      continue;
    }
    path += ';';
    open.push_back({length, items.size()});
    append_items(tree.of(item.node), divisor, items);
  }
}

}  // namespace cprof::format
