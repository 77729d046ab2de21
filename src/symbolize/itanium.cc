// LLVM's demangler parses a name into a graph of nodes in which a substitution (S_, S0_, T_) points to an earlier node,
// and then prints the graph as a tree. Parsing is linear, but recursive; printing is exponential in the worst case. So:
//  - BoundedParser overrides the recursive productions to count depth and steps, and its allocator stops giving nodes;
//  - CostWalk computes what printing would cost before a byte is printed, visiting each node once.
#include "symbolize/itanium.h"

#include <llvm/Demangle/ItaniumDemangle.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

namespace cprof::symbolize {
namespace {

using llvm::itanium_demangle::AbstractManglingParser;
using llvm::itanium_demangle::ModuleName;
using llvm::itanium_demangle::Node;
using llvm::itanium_demangle::NodeArray;
using llvm::itanium_demangle::OutputBuffer;

constexpr size_t kMaxNodeBytes = 8 << 20;
constexpr unsigned kMaxParseDepth = 1024;
constexpr unsigned kMaxTemplateTemplates = 256;
constexpr unsigned kMaxParseSteps = 400'000;
constexpr unsigned kMaxNodeDepth = 1024;
constexpr uint64_t kMaxPrintCost = 4 << 20;   // about one unit a byte or a few nanoseconds
constexpr size_t kMaxOutput = 256 << 10;

// Bump allocation in blocks; gives null when the budget is spent, which the parser takes for a malformed name.
class NodeArena {
 public:
  void reset() { blocks_.clear(), used_ = left_ = 0; }

  template <typename T, typename... Args>
  T* makeNode(Args&&... args) {
    if (used_ > kMaxNodeBytes) return nullptr;
    return new (allocate(sizeof(T))) T(std::forward<Args>(args)...);
  }
  // Never null: the parser copies into it unchecked. Its size is bounded by the nodes made before.
  void* allocateNodeArray(size_t count) { return allocate(sizeof(Node*) * count); }

 private:
  void* allocate(size_t size) {
    size = (std::max<size_t>(size, 1) + 15) & ~size_t{15};  // an array of nothing has an address too
    if (size > left_) {
      left_ = std::max<size_t>(size, kBlock);
      blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(left_));
      next_ = blocks_.back().get();
    }
    void* result = next_;
    next_ += size, left_ -= size, used_ += size;
    return result;
  }

  static constexpr size_t kBlock = 16 << 10;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* next_ = nullptr;
  size_t left_ = 0, used_ = 0;
};

class BoundedParser : public AbstractManglingParser<BoundedParser, NodeArena> {
  using Base = AbstractManglingParser<BoundedParser, NodeArena>;

 public:
  using Base::Base;

  // These hide the productions through which every recursion of the grammar passes.
  Node* parseType() {
    return guarded([this] { return Base::parseType(); });
  }
  Node* parseQualifiedType() {
    return guarded([this] { return Base::parseQualifiedType(); });
  }
  Node* parseExpr() {
    return guarded([this] { return Base::parseExpr(); });
  }
  Node* parseEncoding(bool parameters = true) {
    return guarded([=, this] { return Base::parseEncoding(parameters); });
  }
  Node* parseTemplateArgs(bool tag_templates = false) {
    return guarded([=, this] { return Base::parseTemplateArgs(tag_templates); });
  }
  Node* parseTemplateArg() {
    return guarded([this] { return Base::parseTemplateArg(); });
  }
  Node* parseName(NameState* state = nullptr) {
    return guarded([=, this] { return Base::parseName(state); });
  }
  Node* parseConstraintExpr() {
    return guarded([this] { return Base::parseConstraintExpr(); });
  }
  Node* parseBracedExpr() {
    return guarded([this] { return Base::parseBracedExpr(); });
  }
  Node* parseUnresolvedType() {
    return guarded([this] { return Base::parseUnresolvedType(); });
  }
  Node* parseUnqualifiedName(NameState* state, Node* scope, ModuleName* module) {
    return guarded([=, this] { return Base::parseUnqualifiedName(state, scope, module); });
  }
  Node* parseTemplateParamDecl(TemplateParamList* parameters) {
    return guarded([=, this] { return Base::parseTemplateParamDecl(parameters); });
  }

 private:
  template <typename Parse>
  Node* guarded(Parse parse) {
    if (depth_ >= kMaxParseDepth || ++steps_ > kMaxParseSteps) return nullptr;
    depth_++;
    Node* node = parse();
    depth_--;
    return node;
  }

  unsigned depth_ = 0, steps_ = 0;
};

struct Cost {
  uint64_t print = 0;
  uint32_t depth = 0;
  uint32_t largest_pack = 0;
  bool done = false;
};

// What one node adds to the walk: its own text, and children in three kinds.
struct Shape {
  uint64_t text = 0;
  uint32_t pack_size = 0;
  bool is_pack = false;            // prints one of its children at a time
  const Node* pattern = nullptr;   // printed once for each element of the packs below it
  std::vector<const Node*>& children;

  void operator()(const Node* node) {
    if (node) children.push_back(node);
  }
  void operator()(Node* node) { (*this)(static_cast<const Node*>(node)); }
  void operator()(NodeArray array) {
    for (const Node* node : array) (*this)(node);
  }
  void operator()(std::string_view words) { text += words.size(); }
  template <typename Other>
  void operator()(const Other&) {}

  template <typename NodeType>
  void take(const NodeType* node) {
    node->match([this](auto&&... parts) { ((*this)(parts), ...); });
  }
  void take(const llvm::itanium_demangle::ForwardTemplateReference* node) { (*this)(node->Ref); }
  void take(const llvm::itanium_demangle::ParameterPack* node) {
    is_pack = true;
    node->match([this](NodeArray elements) { (*this)(elements), pack_size = static_cast<uint32_t>(elements.size()); });
  }
  void take(const llvm::itanium_demangle::ParameterPackExpansion* node) { pattern = node->getChild(); }
  void take(const llvm::itanium_demangle::FoldExpr* node) {
    node->match([this](bool, std::string_view, const Node* pack, const Node* initial) {
      pattern = pack;
      (*this)(initial);
    });
  }
};

// Out of line: its frame is large, and must not be on the stack while the walk goes deeper.
__attribute__((noinline)) void take_shape(const Node* node, Shape& shape) {
  node->visit([&](const auto* typed) { shape.take(typed); });
}

class CostWalk {
 public:
  // False: over the budget, too deep, or a cycle through forward references (whose printing is factorial).
  bool affordable(const Node* root) {
    Cost cost = walk(root, 0);
    return !failed_ && cost.print <= kMaxPrintCost;
  }

 private:
  static uint64_t capped(uint64_t cost) { return std::min(cost, kMaxPrintCost + 1); }

  Cost walk(const Node* node, uint32_t level) {
    auto [place, fresh] = costs_.try_emplace(node);
    if (!fresh) {
      if (!place->second.done) failed_ = true;
      return place->second;
    }
    if (failed_ || level > kMaxNodeDepth) {
      failed_ = true;
      return {};
    }
    Cost cost = sum_children(node, level);
    // A node asks its children what they print to the right, and they theirs: hence the depth.
    cost.print = capped(cost.print + 16 + cost.depth);
    cost.done = true;
    if (cost.print > kMaxPrintCost || cost.depth > kMaxNodeDepth) failed_ = true;
    return costs_[node] = cost;
  }

  Cost sum_children(const Node* node, uint32_t level) {
    size_t first = children_.size();
    Shape shape{.children = children_};
    take_shape(node, shape);
    Cost sum;
    sum.print = shape.text;
    uint64_t largest = 0;
    auto add = [&](const Cost& child, uint64_t print) {
      sum.print = capped(sum.print + print);
      sum.depth = std::max(sum.depth, child.depth + 1);
      sum.largest_pack = std::max(sum.largest_pack, child.largest_pack);
      largest = std::max(largest, print);
    };
    for (size_t i = first; i < children_.size(); i++) {
      Cost child = walk(children_[i], level + 1);
      add(child, child.print);
    }
    children_.resize(first);
    if (shape.pattern) {
      Cost child = walk(shape.pattern, level + 1);
      add(child, capped((child.print + 2) * std::max(1u, child.largest_pack)));
    }
    if (shape.is_pack) {
      sum.print = largest;
      sum.largest_pack = std::max(sum.largest_pack, shape.pack_size);
    }
    return sum;
  }

  std::unordered_map<const Node*, Cost> costs_;
  std::vector<const Node*> children_;  // of all nodes on the path, one after the other
  bool failed_ = false;
};

std::string print(const Node* node) {
  struct Buffer : OutputBuffer {
    ~Buffer() { std::free(getBuffer()); }
  } buffer;
  node->print(buffer);
  return std::string(std::string_view(buffer));
}

// The one recursion of LLVM's parser that does not pass BoundedParser: template parameters of template parameters ("Tt").
bool has_many_template_templates(std::string_view mangled) {
  unsigned count = 0;
  for (size_t at = mangled.find("Tt"); at != mangled.npos; at = mangled.find("Tt", at + 2)) count++;
  return count > kMaxTemplateTemplates;
}

// ".isra.0.cold" -> " [clone .isra.0] [clone .cold]", as c++filt writes it.
std::string clone_suffix(std::string_view suffix) {
  std::string text;
  while (!suffix.empty()) {
    size_t end = suffix.find('.', 1);
    while (end < suffix.size() - 1 && end != suffix.npos && isdigit(static_cast<unsigned char>(suffix[end + 1]))) {
      end = suffix.find('.', end + 1);
    }
    text.append(" [clone ").append(suffix.substr(0, end)).append("]");
    suffix = end == suffix.npos ? std::string_view{} : suffix.substr(end);
  }
  return text;
}

bool is_name_character(char c) {
  return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

// The index behind the bracket that closes the one at `open`; the end when none does. "->" closes nothing.
size_t skip_brackets(std::string_view text, size_t open) {
  size_t depth = 0;
  for (size_t i = open; i < text.size(); i++) {
    char c = text[i];
    if (c == '<' || c == '(') depth++;
    if ((c == '>' && text[i - 1] != '-') || c == ')') depth--;
    if (depth == 0) return i + 1;
  }
  return text.size();
}

// Length of the operator's symbol behind "operator" at `start`; 0 for conversions and new/delete.
size_t operator_length(std::string_view text, size_t start) {
  static constexpr std::string_view kSymbols[] = {"<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=", ">=", "->",
                                                  "&&",  "||",  "++",  "--",  "+=", "-=", "*=", "/=", "%=", "^=", "&=",
                                                  "|=",  "==",  "!=",  "<",   ">",  "+",  "-",  "*",  "/",  "%",  "^",
                                                  "&",   "|",   "~",   "!",   "=",  ","};
  for (std::string_view symbol : kSymbols) {
    if (!text.substr(start).starts_with(symbol)) continue;
    size_t end = start + symbol.size();
    bool less_with_arguments = symbol == "<<" && end < text.size() && !strchr("(<[: ", text[end]);  // "operator<<int>"
    return less_with_arguments ? 1 : symbol.size();
  }
  return 0;
}

}  // namespace

std::string shorten_name(std::string_view full) {
  static constexpr std::string_view kOperator = "operator", kAnonymous = "(anonymous namespace)";
  std::string out;
  size_t i = 0;
  while (i < full.size()) {
    std::string_view rest = full.substr(i);
    bool starts_word = i == 0 || !is_name_character(full[i - 1]);
    if (starts_word && rest.starts_with(kOperator) && !(rest.size() > 8 && is_name_character(rest[8]))) {
      size_t length = kOperator.size() + operator_length(full, i + kOperator.size());
      out.append(rest.substr(0, length));
      i += length;
      if (i < full.size() && full[i] == '<') {
        out.append("<>");
        i = skip_brackets(full, i);
      }
    } else if (rest.starts_with(kAnonymous)) {
      out.append(kAnonymous);
      i += kAnonymous.size();
    } else if (rest[0] == '(' && i > 0) {
      i = skip_brackets(full, i);
      while (full.substr(i).starts_with(" const")) i += 6;
    } else if (rest[0] == '<' && i > 0 && (is_name_character(full[i - 1]) || full[i - 1] == ']')) {
      out.append("<>");
      i = skip_brackets(full, i);
    } else {
      out += rest[0];
      i++;
    }
  }
  return out;
}

std::optional<std::string> demangle_itanium(std::string_view mangled, bool short_form) {
  if (has_many_template_templates(mangled)) return std::nullopt;
  BoundedParser parser(mangled.data(), mangled.data() + mangled.size());
  const Node* root = parser.parse();
  if (!root || !CostWalk().affordable(root)) return std::nullopt;

  std::string suffix;
  if (root->getKind() == Node::KDotSuffix) {
    static_cast<const llvm::itanium_demangle::DotSuffix*>(root)->match([&](const Node* prefix, std::string_view text) {
      root = prefix;
      if (!short_form) suffix = clone_suffix(text);
    });
  }
  if (short_form && root->getKind() == Node::KFunctionEncoding) {
    root = static_cast<const llvm::itanium_demangle::FunctionEncoding*>(root)->getName();
  }
  std::string name = print(root) + suffix;
  if (name.size() > kMaxOutput) return std::nullopt;
  return short_form ? shorten_name(name) : name;
}

}  // namespace cprof::symbolize
