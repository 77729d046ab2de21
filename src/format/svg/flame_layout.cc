#include "format/svg/flame_layout.h"

#include <algorithm>
#include <cmath>

#include "format/values.h"

namespace cprof::format {

void FlameLayout::add(std::string_view path, int64_t value) {
  size_t depth = 0, from = 0;
  bool is_same = true;
  while (from <= path.size()) {
    const size_t to = std::min(path.find(';', from), path.size());
    const std::string_view name = path.substr(from, to - from);
    if (is_same && (depth == open_.size() || open_[depth].name != name)) {
      is_same = false;
      close(depth);
    }
    if (!is_same) open_.push_back({std::string(name), static_cast<uint32_t>(depth), at_, 0, 0});
    ++depth;
    from = to + 1;
  }
  close(depth);
  for (FlameBox& box : open_) box.total = add_clamped(box.total, value);
  total_ = add_clamped(total_, value);
  at_ += std::fabs(static_cast<double>(value));
}

void FlameLayout::close(size_t depth) {
  while (open_.size() > depth) {
    FlameBox& box = open_.back();
    box.width = at_ - box.start;
    if (box.width < least_width_ || box.width == 0) {
      ++narrow_;
    } else {
      depth_ = std::max(depth_, box.depth + 1);
      boxes_.push_back(std::move(box));
    }
    open_.pop_back();
  }
}

void FlameLayout::finish() { close(0); }

}  // namespace cprof::format
