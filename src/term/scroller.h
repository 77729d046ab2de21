// Which part of a long list a live view shows. Pure state; the view draws it.
#pragma once

#include <algorithm>
#include <cstddef>

#include "term/terminal.h"

namespace cprof::term {

class Scroller {
 public:
  // Before each drawing: how many rows there are, and how many fit.
  void fit(size_t rows, size_t page) {
    rows_ = rows;
    page_ = std::max<size_t>(page, 1);
    first_ = std::min(first_, last_first());
  }
  size_t first() const { return first_; }
  size_t end() const { return std::min(first_ + page_, rows_); }

  // False: no key for this.
  bool take(Key key) {
    switch (key) {
      case Key::kUp: first_ -= std::min<size_t>(first_, 1); return true;
      case Key::kDown: first_ = std::min(first_ + 1, last_first()); return true;
      case Key::kPageUp: first_ -= std::min(first_, page_); return true;
      case Key::kPageDown: first_ = std::min(first_ + page_, last_first()); return true;
      case Key::kHome: first_ = 0; return true;
      case Key::kEnd: first_ = last_first(); return true;
      default: return false;
    }
  }

 private:
  size_t last_first() const { return rows_ > page_ ? rows_ - page_ : 0; }
  size_t rows_ = 0, page_ = 1, first_ = 0;
};

}  // namespace cprof::term
