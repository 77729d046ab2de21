#include "uprobe/function_pattern.h"

namespace cprof::uprobe {
namespace {

size_t find_single_colon(std::string_view text) {
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != ':') continue;
    size_t end = i;
    while (end < text.size() && text[end] == ':') end++;
    if (end - i == 1) return i;
    i = end;
  }
  return text.npos;
}

}  // namespace

Result<FunctionPattern> FunctionPattern::parse(std::string_view text) {
  FunctionPattern pattern{.text = std::string(text), .file = {}, .name = std::string(text)};
  if (const size_t colon = find_single_colon(text); colon != text.npos) {
    pattern.file = text.substr(0, colon);
    pattern.name = text.substr(colon + 1);
    if (pattern.file.empty()) return fail("'" + pattern.text + "': no file before the colon");
  }
  if (pattern.name.empty()) return fail("'" + pattern.text + "': no function; '*' is every one");
  return pattern;
}

bool FunctionPattern::names_file(std::string_view path) const {
  const std::string_view base = path.substr(path.rfind('/') + 1);
  if (matches_glob(file, path) || matches_glob(file, base)) return true;
  const size_t so = base.find(".so");
  return so != base.npos && matches_glob(file, base.substr(0, so));
}

// One star is open at a time: what a later one takes, an earlier one need not.
bool matches_glob(std::string_view glob, std::string_view text) {
  size_t at = 0, star = glob.npos, star_text = 0, i = 0;
  while (i < text.size()) {
    if (at < glob.size() && glob[at] == '*') {
      star = at++;
      star_text = i;
    } else if (at < glob.size() && (glob[at] == '?' || glob[at] == text[i])) {
      at++;
      i++;
    } else if (star != glob.npos) {
      at = star + 1;
      i = ++star_text;
    } else {
      return false;
    }
  }
  while (at < glob.size() && glob[at] == '*') at++;
  return at == glob.size();
}

}  // namespace cprof::uprobe
