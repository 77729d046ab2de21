// Colours of a live view: nothing but the text where colours are not wanted. Text that is styled must be cut to its width
// before.
#pragma once

#include <string>
#include <string_view>

namespace cprof::term {

class Style {
 public:
  explicit Style(bool is_on) : is_on_(is_on) {}

  std::string title(std::string_view text) const { return with("\x1b[1m", text); }
  std::string header(std::string_view text) const { return with("\x1b[7m", text); }
  std::string chosen(std::string_view text) const { return with("\x1b[1;7m", text); }
  std::string faint(std::string_view text) const { return with("\x1b[2m", text); }
  std::string warm(std::string_view text) const { return with("\x1b[33m", text); }
  std::string hot(std::string_view text) const { return with("\x1b[1;31m", text); }
  std::string cool(std::string_view text) const { return with("\x1b[36m", text); }

 private:
  std::string with(std::string_view code, std::string_view text) const {
    if (!is_on_) return std::string(text);
    return std::string(code) + std::string(text) + "\x1b[0m";
  }
  bool is_on_;
};

}  // namespace cprof::term
