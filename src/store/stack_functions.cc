#include "store/stack_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>

#include "store/sql_value.h"

namespace cprof::store {
namespace {

// Which call sites have a frame of a name on their stack. One bit a site, filled once for a pattern, so that asking for
// every row of a big table costs one pass over the call sites.
class ContainsCache {
 public:
  enum class How : uint8_t { kEqual, kGlob };

  const std::vector<bool>& sites_with(const StackIndex& stacks, How how, const std::string& pattern) {
    auto found = std::ranges::find_if(
        answers_, [&](const Answer& a) { return a.how == how && a.pattern == pattern && a.of == &stacks; });
    if (found != answers_.end()) {
      answers_.splice(answers_.begin(), answers_, found);
      return answers_.front().sites;
    }
    answers_.push_front({&stacks, how, pattern, answer(stacks, how, pattern)});
    if (answers_.size() > kKept) answers_.pop_back();
    return answers_.front().sites;
  }

 private:
  static constexpr size_t kKept = 8;
  struct Answer {
    const StackIndex* of;
    How how;
    std::string pattern;
    std::vector<bool> sites;
  };

  static std::vector<bool> answer(const StackIndex& stacks, How how, const std::string& pattern) {
    std::vector<bool> names(stacks.string_count());
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string name(stacks.text(StringId(i)));
      names[i] = how == How::kEqual ? name == pattern : sqlite3_strglob(pattern.c_str(), name.c_str()) == 0;
    }
    std::vector<bool> sites(stacks.sites().size());
    for (uint32_t site = 0; site < sites.size(); ++site) {
      const uint32_t parent = stacks.sites()[site].parent;
      sites[site] =
          (parent != StackIndex::kNone && sites[parent]) ||
          std::ranges::any_of(stacks.lines_of(site), [&](const auto& line) { return names[line.name.index()]; });
    }
    return sites;
  }

  std::list<Answer> answers_;
};

struct Functions {
  StackIndexCache& stacks;
  ContainsCache contains;
};

struct Place {
  const StackIndex* stacks;
  uint32_t site;
};

// The call site that the first argument names; the result is NULL when there is none, an error when there are no
// stacks.
std::optional<Place> place(sqlite3_context* context, sqlite3_value** arguments) {
  auto stacks = static_cast<Functions*>(sqlite3_user_data(context))->stacks.get();
  if (!stacks) {
    sqlite3_result_error(context, stacks.error().message.c_str(), -1);
    return std::nullopt;
  }
  if (sqlite3_value_type(arguments[0]) == SQLITE_NULL) return std::nullopt;
  const auto site = (*stacks)->site(sqlite3_value_int64(arguments[0]));
  if (!site) return std::nullopt;
  return Place{*stacks, *site};
}

std::vector<uint32_t> path_to(const StackIndex& stacks, uint32_t site) {
  std::vector<uint32_t> path;
  for (; site != StackIndex::kNone; site = stacks.sites()[site].parent) path.push_back(site);
  std::ranges::reverse(path);
  return path;
}

void stack(sqlite3_context* context, int count, sqlite3_value** arguments) {
  const auto at = place(context, arguments);
  if (!at) return;
  const std::string separator(count > 1 ? text_of(arguments[1]).value_or(std::string_view()) : ";");
  std::string text;
  for (uint32_t site : path_to(*at->stacks, at->site)) {
    const auto lines = at->stacks->lines_of(site);
    for (size_t i = lines.size(); i-- > 0;) {
      if (!text.empty()) text += separator;
      text += at->stacks->text(lines[i].name);
    }
  }
  result_text(context, text);
}

void leaf(sqlite3_context* context, int, sqlite3_value** arguments) {
  if (const auto at = place(context, arguments))
    result_text(context, at->stacks->text(at->stacks->lines_of(at->site).front().name));
}

void root(sqlite3_context* context, int, sqlite3_value** arguments) {
  const auto at = place(context, arguments);
  if (!at) return;
  const uint32_t site = path_to(*at->stacks, at->site).front();
  result_text(context, at->stacks->text(at->stacks->lines_of(site).back().name));
}

template <ContainsCache::How how>
void contains(sqlite3_context* context, int, sqlite3_value** arguments) {
  const auto at = place(context, arguments);
  const auto pattern = text_of(arguments[1]);
  if (!at || !pattern) return;
  auto& cache = static_cast<Functions*>(sqlite3_user_data(context))->contains;
  sqlite3_result_int(context, cache.sites_with(*at->stacks, how, std::string(*pattern))[at->site]);
}

struct FunctionRow {
  const char* name;
  int arguments;
  void (*call)(sqlite3_context*, int, sqlite3_value**);
};

constexpr FunctionRow kFunctions[] = {
    {"stack", 1, stack},
    {"stack", 2, stack},
    {"leaf", 1, leaf},
    {"root", 1, root},
    {"contains", 2, contains<ContainsCache::How::kEqual>},
    {"matches", 2, contains<ContainsCache::How::kGlob>},
};

}  // namespace

Result<void> add_stack_functions(sqlite3* db, StackIndexCache& stacks) {
  for (const FunctionRow& row : kFunctions) {
    auto* functions = new Functions{stacks, {}};
    auto destroy = [](void* pointer) { delete static_cast<Functions*>(pointer); };
    if (sqlite3_create_function_v2(db, row.name, row.arguments, SQLITE_UTF8 | SQLITE_INNOCUOUS, functions, row.call,
                                   nullptr, nullptr, destroy) != SQLITE_OK)
      return fail(fmt::format("{}: {}", row.name, sqlite3_errmsg(db)));
  }
  return {};
}

}  // namespace cprof::store
