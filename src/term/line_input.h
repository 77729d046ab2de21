// A line that is typed at the bottom of a live view: a filter. Pure state; the view draws it.
#pragma once

#include <optional>
#include <string>

#include "term/terminal.h"

namespace cprof::term {

class LineInput {
 public:
  bool is_active() const { return is_active_; }
  const std::string& text() const { return text_; }

  void begin(std::string text) {
    before_ = text_ = std::move(text);
    is_active_ = true;
  }
  // The text as it is with this key; ESC gives back what was there before.
  void take(const Event& event) {
    if (event.key == Key::kCharacter && event.character >= ' ') text_ += event.character;
    if (event.key == Key::kBackspace && !text_.empty()) text_.pop_back();
    if (event.key == Key::kEscape) text_ = before_;
    if (event.key == Key::kEnter || event.key == Key::kEscape) is_active_ = false;
  }

 private:
  std::string text_, before_;
  bool is_active_ = false;
};

}  // namespace cprof::term
